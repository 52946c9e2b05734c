"""The evaluation of resource discovery (paper 001, section 6): workloads, a network, measures."""
