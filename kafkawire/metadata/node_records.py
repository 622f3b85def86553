"""Applies the records of brokers and controllers to an image.

A change of a broker names its epoch; that of another incarnation does not apply.
"""

from __future__ import annotations

from ..messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from ..messages.fence_broker_record import FenceBrokerRecord
from ..messages.register_broker_record import RegisterBrokerRecord
from ..messages.register_controller_record import RegisterControllerRecord
from ..messages.unfence_broker_record import UnfenceBrokerRecord
from ..messages.unregister_broker_record import UnregisterBrokerRecord
from ..messages.unregister_controller_record import UnregisterControllerRecord
from .delta import MetadataDelta
from .image import MetadataImage
from .inapplicable import Inapplicable, removed
from .registrations import FENCED, BrokerRegistration, Endpoint


def broker_registered(
    image: MetadataImage, record: RegisterBrokerRecord, delta: MetadataDelta
) -> None:
    """Register a broker, or replace its registration."""
    cordoned = record.cordoned_log_dirs
    image.brokers[record.broker_id] = BrokerRegistration(
        record.broker_id,
        record.incarnation_id,
        record.broker_epoch,
        tuple(
            Endpoint(each.name, each.host, each.port, each.security_protocol)
            for each in record.end_points
        ),
        tuple(
            (each.name, each.min_supported_version, each.max_supported_version)
            for each in record.features
        ),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        tuple(record.log_dirs),
        None if cordoned is None else tuple(cordoned),
    )
    delta.brokers[record.broker_id] = None


def _broker(image: MetadataImage, broker_id: int, epoch: int) -> BrokerRegistration:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise Inapplicable(f"unknown broker {broker_id}")
    if broker.epoch != epoch:
        raise Inapplicable(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
    return broker


def broker_unregistered(
    image: MetadataImage, record: UnregisterBrokerRecord, delta: MetadataDelta
) -> None:
    """Forget a broker."""
    _broker(image, record.broker_id, record.broker_epoch)
    del image.brokers[record.broker_id]
    image.registered_at.pop(record.broker_id, None)
    delta.brokers[record.broker_id] = None


def broker_fenced(
    image: MetadataImage, record: FenceBrokerRecord | UnfenceBrokerRecord, delta: MetadataDelta
) -> None:
    """Fence or unfence a broker, as before metadata.version 3.3."""
    broker = _broker(image, record.id, record.epoch)
    fenced = isinstance(record, FenceBrokerRecord)
    image.brokers[record.id] = broker._replace(fenced=fenced)
    delta.brokers[record.id] = None


def broker_changed(
    image: MetadataImage, record: BrokerRegistrationChangeRecord, delta: MetadataDelta
) -> None:
    """Change the state of a broker."""
    broker = _broker(image, record.broker_id, record.broker_epoch)
    if record.fenced and record.fenced not in FENCED:
        raise Inapplicable(f"{record.fenced} is not a valid value of fenced")
    if record.in_controlled_shutdown not in (0, 1):
        raise Inapplicable(
            f"{record.in_controlled_shutdown} is not a valid value of inControlledShutdown"
        )
    image.brokers[record.broker_id] = broker.changed(record)
    delta.brokers[record.broker_id] = None


def controller_registered(
    image: MetadataImage, record: RegisterControllerRecord, delta: MetadataDelta
) -> None:
    """Register a controller."""
    image.controllers[record.controller_id] = record
    delta.controllers[record.controller_id] = None


def controller_unregistered(
    image: MetadataImage, record: UnregisterControllerRecord, delta: MetadataDelta
) -> None:
    """Forget a controller."""
    removed(image.controllers, record.controller_id, "controller")
    delta.controllers[record.controller_id] = None
