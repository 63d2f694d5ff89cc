"""GraphQL over the same façade as REST: queries, mutations, and events as a subscription."""

from calve.api.graphql.serving import routers

__all__ = ["routers"]
