"""What tables read from messages: headers, and fields of bodies without decoding them whole."""
