"""A broker that is secured by one directory (`kohort serve --secure DIR`).

The directory has an authority, a certificate of the broker's that it signed, the password of a first user, and files of
settings for clients; what isn't there is made.
"""
