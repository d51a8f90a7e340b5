"""Objects that may replace a weight in an HDF5 file; each function takes a file and a name."""

from collections.abc import Callable

import h5py
import numpy as np

OTHER_FILE = "/etc/passwd"


def external_link(file: h5py.File, name: str) -> None:
    file[name] = h5py.ExternalLink(OTHER_FILE, "x")


def soft_link(file: h5py.File, name: str) -> None:
    file[name] = h5py.SoftLink("/")


def cycle(file: h5py.File, name: str) -> None:
    file[name] = file["/"]


def external_data(file: h5py.File, name: str) -> None:
    file.create_dataset(name, (2,), "f4", external=[(OTHER_FILE, 0, 8)])


def shape_bomb(file: h5py.File, name: str) -> None:
    file.create_dataset(name, (2**29,), "f4", chunks=(2**20,), compression="gzip")


def unallocated(file: h5py.File, name: str) -> None:
    file.create_dataset(name, (2**29,), "f4")


def virtual(file: h5py.File, name: str) -> None:
    layout = h5py.VirtualLayout((2**29,), "f4")
    file.create_virtual_dataset(name, layout)


def texts(file: h5py.File, name: str) -> None:
    file[name] = ["text", "more"]


def objects(file: h5py.File, name: str) -> None:
    file[name] = np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")])


def notes(file: h5py.File, name: str) -> None:
    file[name] = np.zeros(2, np.float32)
    file[name].attrs["dtype"] = ["bfloat16"] * 1000


def empty(file: h5py.File, name: str) -> None:
    file[name] = h5py.Empty("f4")


def nested(file: h5py.File, name: str) -> None:
    file.create_group(f"{name}/" + "a/" * 200)


# Function -> the message of the refusal.
CHANGES: dict[Callable[[h5py.File, str], None], str] = {
    external_link: "a weight is in the wrong place",
    soft_link: "a weight is in the wrong place",
    cycle: "a weight is in two places",
    external_data: "a weight is in the wrong place",
    shape_bomb: "its weights are larger than the file",
    unallocated: "its weights are larger than the file",
    virtual: "a weight is in the wrong place",
    texts: "a weight is not a number",
    objects: "classifier.weight of .* is of type|shape",
    empty: "a weight is not a number",
    notes: "a weight has attributes",
    nested: "its weights are nested too deeply",
}
