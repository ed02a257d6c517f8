import * as z from 'zod';
import { models } from '../../../domain/batch_export.ts';
import { conditionSchema } from '../../batch_exports/schema.ts';
import { intervalStatuses } from '../../intervals/schema.ts';
import { runSchema } from '../../runs/schema.ts';
import { limitParameter, responseTimestampSchema } from '../../schemas.ts';
import { presetNames, scopes } from '../../scopes.ts';
import { listTime } from '../../list_times.ts';

/** The letters of interval statuses in `cells.statuses`; `missing` is what nothing has exported. */
export const intervalLetters = {
  exported: 'e',
  running: 'r',
  held: 'h',
  unsettled: 'u',
  failed: 'f',
  gap: 'g',
  due: 'd',
  paused: 'p',
  excluded: 'x',
  expired: 'o',
  missing: 'm',
} as const;

/** An export on the page that lists all. */
const overviewItemSchema = z.object({
  id: z.string(),
  name: z.string(),
  model: z.enum(models),
  interval: z.string(),
  destination: z.string().describe('Type and bucket.'),
  paused: z.boolean(),
  condition: conditionSchema,
  behind_intervals: z.number().int().nullable().describe('Null if the schedule cannot be read.'),
  fresh_until: responseTimestampSchema.nullable().describe('The end of the newest exported interval.'),
  next_run_at: responseTimestampSchema
    .nullable()
    .describe('The end of the current interval; null if paused.'),
  cells: z
    .object({
      start: responseTimestampSchema.nullable(),
      statuses: z.string().describe('A letter for each interval, oldest first.'),
      lengths: z
        .array(z.tuple([z.number(), z.number().int()]))
        .describe('Seconds and number of consecutive intervals of that length.'),
    })
    .describe('The newest intervals; those of a hole are missing.'),
  rows_by_hour: z
    .array(z.number().int())
    .describe('Rows of the intervals that ended in each of the last 24 hours.'),
  bytes_by_hour: z.array(z.number().int()),
});
export type OverviewItem = z.infer<typeof overviewItemSchema>;

/** Which exports the page shows. */
export const overviewQuery = z.object({
  limit: limitParameter,
  search: z.string().max(200).default('').describe('A part of the name, the destination or the id.'),
});
export type OverviewQuery = z.infer<typeof overviewQuery>;

export const overviewSchema = z.object({
  now: responseTimestampSchema,
  count: z.number().int().describe('All exports of the project.'),
  needing_attention: z.number().int().describe('Those of them that need attention.'),
  found: z.number().int().describe('Those that match the search.'),
  incidents: z
    .array(
      z.object({
        id: z.string(),
        summary: z.string().describe('What is out, since when and why, and how much it concerns.'),
      }),
    )
    .describe('Outages that several exports have in common.'),
  exports: z.array(overviewItemSchema).describe('The first that match; those that need attention first.'),
});
export type Overview = z.infer<typeof overviewSchema>;

/** An active run and how fast it exports. */
const activeRun = z.object({
  run: runSchema,
  rows_per_second: z.number().nullable().describe('Over the last minute; null before its first part.'),
  bytes_per_second: z.number().nullable(),
  attempts: z.number().int().describe('How many attempts at its ranges have started.'),
});

/** The oldest active runs of an export, oldest first. */
export const activeRunsSchema = z.object({
  now: responseTimestampSchema,
  total: z.number().int().describe('All active runs, also those that are not listed.'),
  runs: z.array(activeRun),
});
export type ActiveRunsResponse = z.infer<typeof activeRunsSchema>;
export type ActiveRun = z.infer<typeof activeRun>;

const step = z.object({
  at: responseTimestampSchema,
  level: z.enum(['info', 'warning', 'error']),
  summary: z.string(),
  detail: z.string().nullable(),
  range: z.number().int().nullable().describe('The key range of the step; null if it is of the whole run.'),
});
export type RunStep = z.infer<typeof step>;

/** What a run did, as the journal recorded it, oldest first. */
export const runStepsSchema = z.object({
  run: runSchema,
  steps: z.array(step),
  parts: z.number().int(),
  is_complete: z.boolean().describe('False if the newest steps were left out.'),
  throughput: z
    .array(
      z.object({
        at: responseTimestampSchema.describe('The start of the bin.'),
        seconds: z.number(),
        rows: z.number().int(),
        bytes: z.number().int(),
      }),
    )
    .describe('Rows and bytes of the parts, by bins of equal length; bins without parts are left out.'),
});
export type RunStepsResponse = z.infer<typeof runStepsSchema>;

/** An entry of the interval ledger, as the calendar of an export shows it. */
const timelineEntry = z.object({
  data_interval_start: responseTimestampSchema,
  data_interval_end: responseTimestampSchema,
  intervals: z.number().int().describe('1, or the number of intervals of a range without runs.'),
  status: z.enum(intervalStatuses),
  reason: z.string().nullable(),
  generation: z.number().int().nullable(),
  rows: z.number().int().nullable(),
  bytes: z.number().int().nullable(),
  landed_at: responseTimestampSchema
    .nullable()
    .describe('When the first run of the interval completed; later generations do not change it.'),
});

/** The intervals of an export in a range of time, oldest first. */
export const timelineSchema = z.object({
  now: responseTimestampSchema,
  is_complete: z.boolean().describe('False if older entries of the range were left out.'),
  entries: z.array(timelineEntry),
});
export type TimelineResponse = z.infer<typeof timelineSchema>;

export const timelineQuery = z.strictObject({
  after: listTime.optional().describe('Only intervals that end after this time.'),
  before: listTime.optional().describe('Only intervals that start before this time.'),
});

/** What a range of the coverage is. `paused` and `missing` ranges have no run; `owed` ones have one that waits or is active. */
const coverageKinds = [
  'exported',
  'held',
  'failed',
  'owed',
  'missing',
  'paused',
  'excluded',
  'expired',
] as const;
export type CoverageKind = (typeof coverageKinds)[number];

const coverageSegment = z.object({
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  kind: z.enum(coverageKinds),
  intervals: z.number().int(),
});
export type CoverageSegment = z.infer<typeof coverageSegment>;

/** What is exported of the time of an export, and its schedule. */
export const coverageSchema = z.object({
  now: responseTimestampSchema,
  segments: z
    .array(coverageSegment)
    .describe(
      'Adjacent ranges up to the newest ended interval, oldest first, each of another kind than the next.',
    ),
  is_complete: z.boolean().describe('False if older ranges were left out.'),
  sentence: z.string().describe('That of the condition, with what the request says of the source.'),
  newest_interval: z
    .object({ start: responseTimestampSchema, end: responseTimestampSchema })
    .describe('The newest interval that has ended.'),
  next_run_at: responseTimestampSchema
    .nullable()
    .describe('The end of the current interval; null if paused.'),
  run_seconds: z
    .number()
    .nullable()
    .describe('How long a run of the export takes; null before the first one.'),
  concurrent_runs: z.number().int().describe('Runs of a backfill that are active at once.'),
  temporal_ui: z.string().nullable().describe('Link to the workflows of the export in the Temporal UI.'),
});
export type CoverageResponse = z.infer<typeof coverageSchema>;

/** What a page has read of the source with the route `first_row`. */
export const coverageQuery = z.strictObject({
  before: listTime.optional(),
  first_row_at: listTime.optional(),
  rows_before: z.coerce.number().int().min(0).optional(),
});
export type CoverageQuery = z.infer<typeof coverageQuery>;

/** When the source inserted the first row of an export's model and project. */
export const firstRowSchema = z.object({
  at: responseTimestampSchema.nullable().describe('Null if there is no row, or if it is not known.'),
  before: responseTimestampSchema
    .nullable()
    .describe('The time before which the export knows of no interval; null if older ranges were left out.'),
  rows_before: z
    .number()
    .int()
    .nullable()
    .describe('Rows before that time; null without any, and if counting them takes too long.'),
  detail: z.string().nullable().describe('Why it is not known.'),
});
export type FirstRowResponse = z.infer<typeof firstRowSchema>;

/** Exports with the same bucket whose condition has the same cause. */
export const sameTroubleSchema = z.object({
  exports: z.array(z.object({ id: z.string(), name: z.string(), condition: conditionSchema })),
});
export type SameTroubleResponse = z.infer<typeof sameTroubleSchema>;

const namedFields = z.object({
  name: z.string(),
  fields: z.array(
    z.object({ name: z.string(), type: z.string().describe('The ClickHouse name of the type.') }),
  ),
});

/** What an editor of queries completes. */
export const vocabularySchema = z.object({
  tables: z.array(namedFields),
  functions: z.array(
    z.object({ name: z.string(), kind: z.string(), signature: z.string(), description: z.string() }),
  ),
  keywords: z.array(z.string()),
});
export type VocabularyResponse = z.infer<typeof vocabularySchema>;

/** The names of events and properties in the newest rows, the most frequent first. */
export const projectNamesSchema = z.object({
  events: z.array(z.string()),
  event_properties: z.array(z.string()),
  person_properties: z.array(z.string()),
});
export type ProjectNamesResponse = z.infer<typeof projectNamesSchema>;

/** What a key can be created with. */
export const scopesSchema = z.object({
  presets: z.array(
    z.object({ name: z.enum(presetNames), description: z.string(), scopes: z.array(z.enum(scopes)) }),
  ),
  scopes: z.array(z.object({ name: z.enum(scopes), description: z.string() })),
});
export type ScopesResponse = z.infer<typeof scopesSchema>;

/** The text of a query that is checked and not run. */
export const checkQueryBody = z.strictObject({ query: z.string().max(262_144) });

/** What is wrong with a query, and where. Offsets are UTF-16 code units, as in JavaScript. */
export const checkedQuerySchema = z.object({
  error: z
    .object({
      detail: z.string(),
      line: z.number().int(),
      column: z.number().int(),
      offset: z.number().int(),
      length: z.number().int().describe('0 at the end of the text.'),
    })
    .nullable(),
});
export type CheckedQueryResponse = z.infer<typeof checkedQuerySchema>;
