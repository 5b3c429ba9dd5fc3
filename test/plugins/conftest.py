"""What tests that drive a real nginx have: test/nginx/support/nginx_suite.py."""

pytest_plugins = ["nginx_suite"]
