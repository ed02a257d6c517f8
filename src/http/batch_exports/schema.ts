import * as z from 'zod';
import { bounds } from '../../config/bounds.ts';
import { testSteps } from '../../destination/bucket_test.ts';
import { configDocument } from '../../destination/config.ts';
import { checkTable, tableFormats } from '../../tables/table_formats.ts';
import { models } from '../../domain/batch_export.ts';
import { coverageReasons, coverageStates } from '../../domain/coverage.ts';
import { isTimeZone, parseInterval } from '../../domain/intervals.ts';
import { timestampSchema } from '../../journal/commands.ts';
import { allowShrinkField, backfillRange, backfillScope, dryRunField } from '../backfills/schema.ts';
import { runSchema, runStatuses } from '../runs/schema.ts';
import { dialectQueryText, nameText, pathId, readOnly, responseTimestampSchema } from '../schemas.ts';
import {
  destinationTypes,
  destinationTypeText,
  fromPosthog,
  posthogDestinationFields,
  posthogFields,
  withPosthogFields,
} from './from_posthog.ts';
import { conditionCauses, conditionSeverities } from '../../domain/condition_causes.ts';

/** An interval that no automatic retry will fill. */
const gapSchema = z
  .object({
    data_interval_start: responseTimestampSchema,
    data_interval_end: responseTimestampSchema,
    run_id: z.string().describe("The interval's newest run, which can be retried."),
    status: z.enum(runStatuses).describe('The status of that run.'),
  })
  .meta({ id: 'BatchExportGap' });

/** The lag of an export. */
const lagSchema = z
  .object({
    intervals: z
      .number()
      .int()
      .describe(
        'Ended intervals of the schedule without a Completed run, including those without a run, and all gaps. ' +
          'Excludes intervals that the schedule skips: those that ended while paused, before start_at or after end_at.',
      ),
    seconds: z.number().describe('The total length of those intervals.'),
    last_completed_interval_end: responseTimestampSchema
      .nullable()
      .describe('The end of the newest interval that has a Completed run.'),
    gaps: z
      .array(gapSchema)
      .describe(
        'Intervals whose runs have all ended, none Completed or held, and none with a pending automatic retry. ' +
          'The 100 newest, newest first. Retry the run or backfill the interval.',
      ),
  })
  .meta({ id: 'BatchExportLag' });
export type LagResponse = z.infer<typeof lagSchema>;

const actionSchema = z
  .object({
    label: z.string(),
    method: z.enum(['GET', 'POST']),
    path: z.string(),
    body: z.record(z.string(), z.unknown()),
    command: z.string().describe('The same on the command line.'),
  })
  .meta({ id: 'BatchExportConditionAction' });

const coverageSchema = z
  .object({
    sentence: z
      .string()
      .describe(
        "What is exported, what is owed and what is not, in one text with times in the export's zone.",
      ),
    ranges: z
      .array(
        z.object({
          start: responseTimestampSchema.nullable().describe('Null for all time before `end`.'),
          end: responseTimestampSchema,
          state: z
            .enum(coverageStates)
            .describe(
              '`exported`: readers of the bucket see it. `owed`: it will be, or its run has failed. `not_owed`: nothing exports it.',
            ),
          reason: z
            .enum(coverageReasons)
            .nullable()
            .describe(
              '`due` by the schedule, by a `backfill`, or what its newest run ended with; why it is not owed. Null if it is simply exported.',
            ),
        }),
      )
      .describe('Adjacent ranges up to the newest ended interval, oldest first: the 50 newest.'),
    is_complete: z.boolean().describe('False if older ranges were left out.'),
    next_end: responseTimestampSchema
      .nullable()
      .describe('When the interval ends that the schedule exports next; null if it exports none.'),
    backfills: z
      .object({
        finished: z.number().int(),
        total: z.number().int(),
        done_at: responseTimestampSchema
          .nullable()
          .describe('At the pace so far; null while that is not known, and if all are paused.'),
        is_paused: z.boolean(),
      })
      .nullable()
      .describe('Intervals of the unfinished backfills; null without one.'),
  })
  .meta({ id: 'BatchExportCoverage' });

/** How an export does: what every list, page, command, metric and message shows of it. */
export const conditionSchema = z
  .object({
    severity: z
      .enum(conditionSeverities)
      .describe(
        '`error`: the owner has to act. `warning`: it is late, incomplete or not certain yet. `ok`: neither.',
      ),
    cause: z.enum(conditionCauses).describe('Of several that hold, the most urgent one.'),
    summary: z.string().describe('One sentence.'),
    since: responseTimestampSchema.nullable().describe('Null if it is not known, and while all is well.'),
    owner: z
      .enum(['tenant', 'operator', 'none'])
      .describe('Who has to act: the owner of the export, the operator of exportd, or none.'),
    affected: z.object({
      intervals: z.number().int(),
      ranges: z
        .array(z.object({ start: responseTimestampSchema, end: responseTimestampSchema }))
        .describe('The 10 newest, newest first. Empty for an outage, which may concern any.'),
    }),
    actions: z
      .array(actionSchema)
      .describe(
        'Operations that cure it, in this order. Without any, the summary says what has to be mended.',
      ),
    incident: z
      .object({
        id: z.uuid(),
        subject: z.string().describe('What is out, such as `the bucket clicks at s3.example.com`.'),
        summary: z.string().describe('What is out, since when and why.'),
      })
      .nullable()
      .describe(
        'Of an outage: the same for all exports that it concerns, until it is over. Its messages, and the log of the workers, have the id.',
      ),
    coverage: coverageSchema
      .nullable()
      .describe(
        'What is exported of the time of the export; null if this version cannot read its schedule. While all is well, its sentence is the summary.',
      ),
  })
  .meta({ id: 'BatchExportCondition' });

/** Why an export is in its condition. */
export const whySchema = z
  .object({
    summary: z
      .string()
      .describe(
        'The chain from symptom to cause to owner: the summary of the condition, a change that may be why, who has to act.',
      ),
    condition: conditionSchema,
    change: z
      .object({
        at: responseTimestampSchema,
        by: z.string().describe('E-mail address of the user.'),
        key: z.string().nullable().describe('The name of the API key; null if it is not known.'),
        fields: z.array(z.string()),
      })
      .nullable()
      .describe(
        'The newest change of the export within an hour before the cause began, if it can be the reason.',
      ),
    others: z.number().int().describe('Other exports of the project with the same bucket.'),
  })
  .meta({ id: 'BatchExportWhy' });
export type WhyResponse = z.infer<typeof whySchema>;

const model = z.enum(models);

/** A batch export in a response. */
export const batchExportSchema = z
  .object({
    id: z.string(),
    team_id: z.number().int(),
    name: z.string(),
    model,
    destination: z.object({
      type: z.string(),
      config: z.record(z.string(), z.unknown()).describe('Secret fields are never returned.'),
      access_key_id_end: z
        .string()
        .nullable()
        .describe(
          'The last four characters of `aws_access_key_id`; null without one, and if it is short or unreadable.',
        ),
    }),
    interval: z.string(),
    timezone: z.string(),
    offset_hour: z.number().int().nullable().describe('Null for intervals of an hour or less.'),
    offset_day: z.number().int().nullable().describe('Null for intervals of a day or less.'),
    paused: z.boolean(),
    created_at: responseTimestampSchema,
    last_updated_at: responseTimestampSchema,
    last_paused_at: responseTimestampSchema.nullable(),
    start_at: responseTimestampSchema.nullable(),
    end_at: responseTimestampSchema.nullable(),
    latest_runs: z.array(runSchema).describe('The 10 newest runs, newest first.'),
    dialect_query: z.string().nullable(),
    retention_days: z.number().int().nullable(),
    schema: z
      .object({
        fields: z.array(z.object({ alias: z.string(), expression: z.string(), type: z.string() })),
        values: z
          .record(z.string(), z.string())
          .describe('Empty, for clients of PostHog: expressions have their constants in them.'),
        hogql_query: z.string().describe('The same as `dialect_query`.'),
        dialect_query: z.string(),
      })
      .nullable()
      .describe(
        'The columns that `dialect_query` selects; null without a query, when files have the columns of the model.',
      ),
    lag: lagSchema
      .nullable()
      .describe('Null if this version of exportd cannot read the schedule of the export.'),
    condition: conditionSchema,
  })
  .meta({ id: 'BatchExport' });
export type BatchExportResponse = z.infer<typeof batchExportSchema>;

const name = nameText(bounds.name.max);

const interval = z
  .string()
  .refine(
    (text) => parseInterval(text) !== undefined,
    "Must be one of: 'hour', 'day', 'week', 'month', 'every N minutes' (N divides 60).",
  )
  .meta({
    pattern: '^(hour|day|week|month|every (1|2|3|4|5|6|10|12|15|20|30|60) minutes)$',
    examples: ['hour', 'every 5 minutes'],
    default: 'hour',
    description: 'How much time each run exports.',
  });

const offset = (max: number) =>
  z.number().int().min(0, 'Must be at least 0.').max(max, `Must be at most ${max}.`);

/** What optional capabilities check of the configs of requests. */
export const configChecks = { checkTarget: checkTable };

const documentOfConfig = withPosthogFields(configDocument(tableFormats));

/** A config. `parseS3Config` validates it, with messages of its own; the document states the same bounds. */
const config = z.record(z.string(), z.unknown()).meta({ anyOf: [documentOfConfig] });

/** Fields of a config that replace those of the stored one. */
const partialConfig = z
  .record(z.string(), z.unknown())
  .meta({ anyOf: [{ ...documentOfConfig, required: [] }] });

const destinationFields = { access_key_id_end: readOnly, ...posthogDestinationFields };

const destination = z.strictObject({
  type: destinationTypeText.optional(),
  config: partialConfig.nullish(),
  ...destinationFields,
});

const schedule = {
  timezone: z
    .string()
    .refine(isTimeZone, 'Unknown time zone. Use an IANA name such as Europe/Berlin.')
    .nullish()
    .meta({
      description: 'An IANA time zone, in which days, weeks and months start. Null is UTC.',
    }),
  offset_hour: offset(23).nullish().meta({
    description: 'For intervals of a day or longer: the hour that they start at.',
  }),
  offset_day: offset(27).nullish().meta({
    description: 'For a week: days after its Sunday, at most 6. For a month: days after its first.',
  }),
  paused: z.boolean().nullish().meta({ description: 'A paused export starts no runs.' }),
  last_paused_at: timestampSchema
    .nullish()
    .meta({ description: 'When it was last paused. exportd sets it.' }),
  start_at: timestampSchema
    .nullish()
    .meta({ description: 'Intervals that end before this time are not exported.' }),
  end_at: timestampSchema
    .nullish()
    .meta({ description: 'Intervals that end after this time are not exported.' }),
  dialect_query: dialectQueryText.nullish().meta({
    title: 'SQL',
    description:
      'A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.',
  }),
  retention_days: z
    .number()
    .int()
    .min(1, 'Must be at least 1.')
    .max(36_500, 'Must be at most 36,500.')
    .nullish()
    .meta({
      description:
        'The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost.',
    }),
};

const readOnlyFields = {
  id: readOnly,
  team_id: readOnly,
  created_at: readOnly,
  last_updated_at: readOnly,
  latest_runs: readOnly,
  schema: readOnly,
  lag: readOnly,
  condition: readOnly,
};

const newDestination = z.strictObject({
  type: destinationTypeText,
  config: config.nullish(),
  ...destinationFields,
});

const writable = {
  name: name.optional(),
  model: model
    .nullish()
    .meta({ default: 'events', description: 'The rows that are exported: events by default.' }),
  interval: interval.optional(),
  destination: destination.optional(),
  ...schedule,
  ...readOnlyFields,
};

/** What requests may send: the fields of an export, and those of PostHog, which `fromPosthog` takes out. */
const sendable = { ...writable, ...posthogFields };

/**
 * The body of an update. An omitted field keeps its value; null resets it to its default. Also the documented body of pause, in
 * which only `last_paused_at` has an effect, and of a test of the destination with changes.
 */
export const updateBody = z
  .strictObject(sendable)
  .transform(fromPosthog({ isNew: false }))
  .meta({ id: 'BatchExportUpdate' });
export type UpdateBody = z.infer<typeof updateBody>;

/** The body of an update that has to have the fields that a new export needs. */
export const replaceBody = z
  .strictObject({
    ...sendable,
    name,
    interval,
    destination: z.strictObject({ type: destinationTypeText, config: partialConfig, ...destinationFields }),
  })
  .transform(fromPosthog({ isNew: false }))
  .meta({ id: 'BatchExportReplacement' });

export const createBody = z
  .strictObject({ ...sendable, name, destination: newDestination })
  .transform(fromPosthog({ isNew: true }))
  .meta({ id: 'BatchExportCreate' });
export type CreateBody = z.infer<typeof createBody>;

/** The documented body of unpause; only `backfill`, which fills the intervals missed while paused, has an effect. */
export const unpauseBody = z
  .strictObject({
    ...sendable,
    backfill: z
      .boolean()
      .optional()
      .describe('Also backfill the intervals missed since the export was paused.'),
  })
  .transform(fromPosthog({ isNew: false }));

/** The documented body of backfill; only the range, its scope, `allow_shrink` and `dry_run` have an effect. */
export const backfillBody = z
  .strictObject({
    ...sendable,
    ...backfillRange,
    ...backfillScope,
    allow_shrink: allowShrinkField,
    dry_run: dryRunField,
  })
  .transform(fromPosthog({ isNew: false }));

export const batchExportPath = z.object({ project_id: z.string(), id: pathId });

const newDestinationTest = { ...sendable, destination: newDestination };

/** The body that tests the destination of a new export: a creation body, of which destination and model have an effect. */
export const newDestinationTestBody = z
  .strictObject(newDestinationTest)
  .transform(fromPosthog({ isNew: true }))
  .meta({ id: 'DestinationTestNew' });

const step = {
  step: z
    .number()
    .int()
    .min(0, 'Must be at least 0.')
    .max(testSteps.length - 1, `Must be at most ${testSteps.length - 1}.`)
    .default(0)
    .describe('The place of the step in the list of steps, from 0.'),
};

/** The body that carries out one step of such a test, and the steps that it needs. */
export const newTestStepBody = z
  .strictObject({ ...newDestinationTest, ...step })
  .transform(fromPosthog({ isNew: true }))
  .meta({ id: 'DestinationTestStepNew' });

/** The same with the stored config. */
export const testStepBody = z
  .strictObject({ ...sendable, ...step })
  .transform(fromPosthog({ isNew: false }))
  .meta({ id: 'DestinationTestStepUpdate' });

const stepFields = { name: z.string(), description: z.string() };

/** A step of a destination test. */
export const testStepSchema = z
  .object({
    ...stepFields,
    result: z.object({
      status: z
        .enum(['Passed', 'Failed', 'Skipped'])
        .describe('A step is skipped when a step that it depends on failed.'),
      message: z.string().nullable().describe('What is wrong and how it affects exports.'),
      details: z.string().optional().describe('How the store behaves, where the step found out something.'),
    }),
  })
  .meta({ id: 'DestinationTestStep' });

/** The result of each step, in order. */
export const destinationTestSchema = z
  .object({ steps: z.array(testStepSchema) })
  .meta({ id: 'DestinationTest' });

/** Which steps are listed. */
export const testStepsQuery = z.strictObject({
  destination: z
    .enum(destinationTypes, `Must be one of: ${destinationTypes.join(', ')}.`)
    .describe('The type of the destination.'),
});

/** The steps of a test that is not made. */
export const testStepsSchema = z
  .object({ steps: z.array(z.object({ ...stepFields, result: z.null() })) })
  .meta({ id: 'DestinationTestSteps' });
