"""The HTTP service for live experiments, with a dashboard. ``doublesampling serve`` starts it."""
