"""What goes wrong in a simulated world: crashes, disks, clocks."""
