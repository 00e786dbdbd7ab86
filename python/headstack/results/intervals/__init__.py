"""How far a model may be from the device that it stands for: learnt from devices that were measured, refused where too
few were."""
