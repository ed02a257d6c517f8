import { z } from 'zod';
import { exports, maintenance, schedules, source, workflows } from './export_settings.ts';
import { queries } from './query_settings.ts';
import { httpApi, process, security, servers, traces, webhooks } from './server_settings.ts';
import { temporal } from './temporal_settings.ts';

/** Every setting in the order of the README, by the heading that it has there. */
export const settingGroups: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>> = {
  Servers: servers,
  Temporal: temporal,
  Process: process,
  Traces: traces,
  Security: security,
  'HTTP API': httpApi,
  Source: source,
  'Schedules, retries and backfills': schedules,
  Workflows: workflows,
  Exports: exports,
  Maintenance: maintenance,
  Webhooks: webhooks,
  Queries: queries,
};

export const settingsSchema = z.object({
  ...servers,
  ...temporal,
  ...process,
  ...traces,
  ...security,
  ...httpApi,
  ...source,
  ...schedules,
  ...workflows,
  ...exports,
  ...maintenance,
  ...webhooks,
  ...queries,
});
