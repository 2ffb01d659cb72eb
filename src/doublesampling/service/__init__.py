"""The service: live experiments over HTTP, and a dashboard. ``doublesampling serve`` starts it."""
