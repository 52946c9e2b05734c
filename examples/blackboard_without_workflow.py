# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""A blackboard for a telescope, with concepts of its own and no broker at all."""

from tocsin.client.blackboard import InProcessBlackboard, Message
from tocsin.ontology import Vocabulary, read_turtle

CONCEPTS = b"""
@prefix obs: <urn:example:observatory#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
obs:Weather a owl:Class .
obs:WindSpeed a owl:Class ; rdfs:subClassOf obs:Weather .
obs:Humidity a owl:Class ; rdfs:subClassOf obs:Weather .
obs:Seeing a owl:Class .
obs:Exposure a owl:Class .
"""

board = InProcessBlackboard(Vocabulary([read_turtle(CONCEPTS, "observatory.ttl")]))
dome = board.subscribe(["obs:Weather"])  # and so wind and humidity
astronomer = board.subscribe(["obs:Exposure", "obs:Seeing"])

# An instrument measures only what somebody asked for.
readings = {"obs:WindSpeed": "17.5", "obs:Humidity": "41", "obs:Seeing": "0.8", "obs:Dust": "3"}
wanted = board.profile().concepts
board.publish([Message({name: value for name, value in readings.items() if name in wanted})])
board.publish([Message({"obs:Exposure": "300", "obs:Seeing": "0.9"})])

for name, subscription in (("dome", dome), ("astronomer", astronomer)):
    for delivered in subscription.take(wait_s=0):
        print(name, delivered.message.pairs)
