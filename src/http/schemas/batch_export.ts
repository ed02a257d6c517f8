import { z } from 'zod';
import { models } from '../../domain/batch_export.ts';
import { isTimeZone, parseInterval } from '../../domain/intervals.ts';
import { timestamp } from '../../journal/commands.ts';
import { dryRunField } from './backfill.ts';
import { pathId, readOnly, responseTimestamp } from './common.ts';
import { lagSchema } from './lag.ts';
import { runSchema } from './run.ts';

const model = z.enum(models);

/** A batch export as it is answered. */
export const batchExportSchema = z
  .object({
    id: z.string(),
    team_id: z.number().int(),
    name: z.string(),
    model,
    destination: z.object({
      type: z.string(),
      config: z.record(z.string(), z.unknown()).describe('Without its secrets, which are never answered.'),
    }),
    interval: z.string(),
    timezone: z.string(),
    offset_hour: z.number().int(),
    offset_day: z.number().int(),
    paused: z.boolean(),
    created_at: responseTimestamp,
    last_updated_at: responseTimestamp,
    last_paused_at: responseTimestamp.nullable(),
    start_at: responseTimestamp.nullable(),
    end_at: responseTimestamp.nullable(),
    latest_runs: z.array(runSchema).describe('The 10 newest.'),
    dialect_query: z.string().nullable(),
    schema: z
      .object({
        fields: z.array(z.object({ alias: z.string(), expression: z.string(), type: z.string() })),
        dialect_query: z.string(),
      })
      .nullable()
      .describe("The columns that `dialect_query` chooses; null where they are the model's own."),
    lag: lagSchema,
  })
  .meta({ id: 'BatchExport' });
export type BatchExportResponse = z.infer<typeof batchExportSchema>;

const name = z
  .string()
  .max(255, 'At most 255 characters.')
  .refine((text) => text.trim() !== '', 'This field may not be blank.');

const interval = z
  .string()
  .refine(
    (text) => parseInterval(text) !== undefined,
    "Must be one of: 'hour', 'day', 'week', 'month', 'every N minutes' (N divides 60).",
  );

const offset = (max: number) =>
  z
    .number()
    .int()
    .min(0, 'Ensure this value is greater than or equal to 0.')
    .max(max, `Ensure this value is less than or equal to ${max}.`);

const destination = z.strictObject({
  type: z.string().optional(),
  config: z.record(z.string(), z.unknown()).nullish(),
});

const schedule = {
  model: model.nullish(),
  timezone: z.string().refine(isTimeZone, 'There is no such time zone.').nullish(),
  offset_hour: offset(23).nullish(),
  offset_day: offset(27).nullish(),
  paused: z.boolean().nullish(),
  last_paused_at: timestamp.nullish(),
  start_at: timestamp.nullish(),
  end_at: timestamp.nullish(),
  dialect_query: z
    .string()
    .max(65_536, 'At most 65,536 characters.')
    .nullish()
    .describe('A SELECT over the model, which chooses the columns of the files.'),
};

const readOnlyFields = {
  id: readOnly,
  team_id: readOnly,
  created_at: readOnly,
  last_updated_at: readOnly,
  latest_runs: readOnly,
  schema: readOnly,
  lag: readOnly,
};

const writable = {
  name: name.optional(),
  interval: interval.optional(),
  destination: destination.optional(),
  ...schedule,
  ...readOnlyFields,
};

/** The body of an update: absent keeps, null resets to the default. */
export const updateBody = z.strictObject(writable).meta({ id: 'BatchExportUpdate' });
export type UpdateBody = z.infer<typeof updateBody>;

export const createBody = z
  .strictObject({
    ...writable,
    name,
    destination: z.strictObject({
      type: z.string(),
      config: z.record(z.string(), z.unknown()).nullish(),
    }),
  })
  .meta({ id: 'BatchExportCreate' });

/** The documented body of pause; only `last_paused_at` means something. */
export const pauseBody = z.strictObject(writable);

/** The documented body of unpause; `backfill` makes up for the intervals that ended while it was paused. */
export const unpauseBody = z.strictObject({ ...writable, backfill: z.boolean().optional() });

/** The documented body of backfill; the range is what means something. */
export const backfillBody = z.strictObject({
  ...writable,
  start_at: timestamp,
  end_at: timestamp,
  dry_run: dryRunField,
});

export const batchExportPath = z.object({ project_id: z.string(), id: pathId });
