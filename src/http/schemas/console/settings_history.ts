import { z } from 'zod';
import { responseTimestampSchema } from '../common.ts';

/** What can be in the history of an export, beside what its schedule does by itself. */
export const changeKinds = [
  'created',
  'updated',
  'paused',
  'unpaused',
  'backfill_requested',
  'retry_requested',
  'failed_runs_retry_requested',
] as const;
export type ChangeKind = (typeof changeKinds)[number];

export const fieldChange = z.object({
  field: z.string().describe('The path of the field, joined by dots.'),
  before: z.unknown().describe('Null where the field had no value.'),
  after: z.unknown(),
  secret: z.boolean().describe('Whether the field is a secret, whose values are never returned.'),
});
export type FieldChange = z.infer<typeof fieldChange>;

/** A change of an export by a person, or by exportd itself. */
export const settingsChangeSchema = z.object({
  at: responseTimestampSchema,
  kind: z.enum(changeKinds),
  summary: z.string(),
  by: z.discriminatedUnion('type', [
    z.object({ type: z.literal('user'), email: z.string(), first_name: z.string() }),
    z.object({ type: z.literal('signal') }).describe('A signal that was sent to the workflow by hand.'),
    z.object({ type: z.literal('exportd') }),
  ]),
  changes: z.array(fieldChange),
  backfill_id: z.string().nullable(),
  run_id: z.string().nullable(),
});
export type SettingsChange = z.infer<typeof settingsChangeSchema>;
