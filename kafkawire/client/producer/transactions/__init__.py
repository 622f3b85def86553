"""The transactions of a producer: states, requests to coordinators, outcomes of errors.

`outcomes.OUTCOMES` alone says what an error means; `states.LEGAL` and `states.ADMISSION` say
what may follow.
"""
