"""Servers that the settings name: they are only asked whether they answer."""

from tallyhook.errors import LocalStackError
from tallyhook.kafka import client_config
from tallyhook.local.readiness import await_answer, kafka_answers, postgres_answers
from tallyhook.local.service import Progress, Report
from tallyhook.settings import DatabaseSettings, KafkaSettings
