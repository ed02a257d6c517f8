import type { BatchExportDefinition } from '../../src/domain/batch_export.ts';

/** The definition of an hourly export of all events, with the fields that a test changes. */
export const definitionOf = (changes: Partial<BatchExportDefinition> = {}): BatchExportDefinition => ({
  name: 'Events',
  model: 'events',
  destination_type: 'S3',
  config_version: 1,
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  start_at: null,
  end_at: null,
  dialect_query: null,
  retention_days: null,
  ...changes,
});
