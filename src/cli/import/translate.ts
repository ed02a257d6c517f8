import { parseS3Config, type S3Config } from '../../destination/config.ts';
import { type Model, models } from '../../domain/batch_export.ts';
import { CommandRejected } from '../../domain/errors.ts';
import { isTimeZone, parseInterval, type ScheduleDefinition } from '../../domain/intervals.ts';
import { destinationTypes } from '../../http/batch_exports/from_posthog.ts';
import { readRowQuery } from '../../source/row_query/selected_rows.ts';
import type { JsonObject } from '../service_client.ts';
import type { PosthogExport } from './posthog_exports.ts';
import { findSeam, isBoundary, type OldRun, type Seam } from './seam.ts';
import { rejectSelectionForModel } from '../../destination/selection_config.ts';

/** A secret of a destination, and the environment variable that `exportd apply` reads it from. */
type SecretVariables = Readonly<Record<'aws_access_key_id' | 'aws_secret_access_key', string>>;

/** What becomes of an export of PostHog. */
export interface TranslatedExport {
  readonly posthog: { readonly id: string | null; readonly team_id: number | null; readonly name: string };
  /** Why it is left out, a sentence; null if it comes along. */
  readonly left_out: string | null;
  /** Its fields for `exportd apply`, without secrets; null if it is left out. */
  readonly declaration: JsonObject | null;
  readonly secrets: SecretVariables | null;
  readonly seam: Seam | null;
  /** What `exportd apply` rejects until a person changes it, a sentence each. */
  readonly decisions: readonly string[];
  /** What is different from now on, a sentence each. */
  readonly notes: readonly string[];
}

/** The config fields that mean the same in both products. */
const sameFields = [
  'bucket_name',
  'region',
  'prefix',
  'endpoint_url',
  'use_virtual_style_addressing',
  'file_format',
  'compression',
  'max_file_size_mb',
  'encryption',
  'kms_key_id',
  'include_events',
  'exclude_events',
];
/** Those that exportd has no need of: PostHog never returns the values of the secrets. */
const knownFields = [...sameFields, 'aws_access_key_id', 'aws_secret_access_key', 'legacy_parquet_extension'];

/**
 * Translates exports of PostHog to those of a file for `exportd apply`. It guesses nothing: what exportd cannot do stays in the
 * declaration as it is, so that `apply` rejects it, and is one of the `decisions`.
 * @param from the earliest time at which exportd takes over
 */
export function translateExports(exports: readonly PosthogExport[], from: Date): TranslatedExport[] {
  const translated = exports.map((one) => translateExport(one, from));
  const buckets = new Set(
    translated.flatMap(({ declaration }) => (declaration ? [bucketOf(declaration)] : [])),
  );
  const taken = new Set<string>();
  return translated.map((one) => {
    const { declaration, posthog } = one;
    if (declaration === null) return one;
    const name = uniqueName(posthog.name, taken);
    taken.add(name);
    const suffix = buckets.size > 1 ? `_${variableName(bucketOf(declaration))}` : '';
    const renamed =
      name === posthog.name
        ? []
        : [
            `Another export has its name, which identifies an export here: it is ${JSON.stringify(name)} now.`,
          ];
    return {
      ...one,
      declaration: { ...declaration, name },
      notes: [...renamed, ...one.notes],
      secrets: {
        aws_access_key_id: `AWS_ACCESS_KEY_ID${suffix}`,
        aws_secret_access_key: `AWS_SECRET_ACCESS_KEY${suffix}`,
      },
    };
  });
}

/** A name identifies an export in a file: the second of two gets a number. */
function uniqueName(name: string, taken: ReadonlySet<string>): string {
  let unique = name;
  for (let number = 2; taken.has(unique); number += 1) unique = `${name} (${number})`;
  return unique;
}

const isS3 = ({ destination }: PosthogExport): boolean =>
  destinationTypes.some((type) => type === destination.type);

/** The bucket of a declaration. */
const bucketOf = ({ destination }: JsonObject): string =>
  textOf((destination as { readonly config: JsonObject }).config.bucket_name);

/** A value of PostHog's in a message; '' for none. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const variableName = (text: string): string => text.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');

function translateExport(one: PosthogExport, from: Date): TranslatedExport {
  const { id = null, team_id = null, name, interval, destination } = one;
  const posthog = { id, team_id, name };
  const leftOut = (left_out: string): TranslatedExport => ({
    posthog,
    left_out,
    declaration: null,
    secrets: null,
    seam: null,
    decisions: [],
    notes: [],
  });
  if (!isS3(one)) return leftOut(`It writes to ${destination.type}. exportd writes to S3 only.`);
  const model = models.find((known) => known === (one.model ?? 'events'));
  if (model === undefined) {
    const query = one.hogql_query ? ` Its query: ${one.hogql_query}` : '';
    return leftOut(`Its model is ${one.model}. exportd exports ${models.join(' and ')}.${query}`);
  }
  if (parseInterval(interval) === undefined)
    return leftOut(`Its interval is ${JSON.stringify(interval)}, which exportd does not have.`);
  const schedule = scheduleOf(one);
  if (!isTimeZone(schedule.definition.timezone))
    return leftOut(
      `Its time zone is ${JSON.stringify(schedule.definition.timezone)}, which exportd does not know.`,
    );
  const runs = one.latest_runs ?? [];
  const bounds = { paused: one.paused ?? false, start_at: one.start_at ?? null, end_at: one.end_at ?? null };
  const seam = findSeam(schedule.definition, { ...bounds, runs }, from);
  if (seam === undefined)
    return leftOut(`It ends at ${bounds.end_at}, before the first interval that exportd would export.`);
  const rows = rowsOf(one, model);
  const config = configOf(one, model);
  return {
    posthog,
    left_out: null,
    declaration: {
      name,
      model,
      ...givenSchedule(schedule.definition),
      ...(bounds.paused && { paused: true }),
      start_at: seam.start_at,
      ...(bounds.end_at !== null && { end_at: bounds.end_at }),
      ...(rows.query !== null && { dialect_query: rows.query }),
      destination: { type: 'S3', config: { ...config.fields, ...rows.filters } },
    },
    secrets: null,
    seam,
    decisions: [...rows.decisions, ...config.decisions],
    notes: [
      ...schedule.notes,
      ...rows.notes,
      ...config.notes,
      ...modelNotes(model),
      ...failedRuns(runs, seam),
    ],
  };
}

/** A schedule, without the fields that its interval does not depend on. */
function givenSchedule({ interval, timezone, offset_hour, offset_day }: ScheduleDefinition): JsonObject {
  if (parseInterval(interval)?.name === 'minutes') return { interval };
  return {
    interval,
    ...(timezone !== 'UTC' && { timezone }),
    ...(offset_hour !== 0 && { offset_hour }),
    ...(offset_day !== 0 && { offset_day }),
  };
}

/** Until 2026 PostHog returned no time zone, and a week was seven days from the epoch on, a Thursday. */
const epochWeekday = 4;

function scheduleOf(one: PosthogExport): { definition: ScheduleDefinition; notes: string[] } {
  const { interval, timezone, offset_hour, offset_day, latest_runs } = one;
  const isOld = timezone === undefined && offset_day === undefined;
  const definition = {
    interval,
    timezone: timezone ?? 'UTC',
    offset_hour: offset_hour ?? 0,
    offset_day: offset_day ?? (isOld && interval === 'week' ? epochWeekday : 0),
  };
  if (parseInterval(interval)?.name === 'minutes')
    return { definition: { ...definition, timezone: 'UTC', offset_hour: 0, offset_day: 0 }, notes: [] };
  const assumed = isOld
    ? [
        `Its PostHog returns no time zone. Such a version runs a ${interval} in UTC${interval === 'week' ? ', from Thursday to Thursday' : ''}.`,
      ]
    : [];
  const newest = latest_runs?.[0]?.data_interval_end;
  const differs = newest !== undefined && !isBoundary(definition, new Date(newest));
  return {
    definition,
    notes: [
      ...assumed,
      ...(differs
        ? [
            `Its newest run ends at ${newest}, where no ${interval} of this schedule ends: check timezone, offset_hour and offset_day before you apply.`,
          ]
        : []),
    ],
  };
}

/** What selects the rows and columns of an export. */
interface Rows {
  readonly query: string | null;
  readonly filters: JsonObject;
  readonly decisions: readonly string[];
  readonly notes: readonly string[];
}

function rowsOf(one: PosthogExport, model: Model): Rows {
  const query = queryOf(one);
  const filters = (one.filters ?? []).map(filterOf);
  const filterProblems = filters.flatMap(({ filter }, index) => {
    const problem = problemOf(() => checkFilter(filter, model));
    return problem === null ? [] : [`Filter ${index + 1} cannot be used here: ${problem}`];
  });
  const queryProblem =
    query === null
      ? null
      : problemOf(() =>
          readRowQuery(model, { dialect_query: query, timezone: 'UTC', week_start_day: 'sunday' }),
        );
  const dropped = [...new Set(filters.flatMap(({ unknown }) => unknown))];
  const ofQueries = (['hogql_modifiers', 'primary_key', 'version_key', 'incremental_mode'] as const).filter(
    // incremental_mode is APPEND by default, as files are here.
    (field) => (one[field] ?? 'APPEND') !== 'APPEND',
  );
  return {
    query,
    filters: filters.length === 0 ? {} : { filters: filters.map(({ filter }) => filter) },
    decisions: [
      ...filterProblems,
      ...(queryProblem === null ? [] : [`The query cannot be used here: ${queryProblem}`]),
    ],
    notes: [
      ...(dropped.length === 0 ? [] : [`The fields ${dropped.join(', ')} of its filters are left out.`]),
      ...(ofQueries.length === 0
        ? []
        : [`The fields ${ofQueries.join(', ')} are left out: exportd has none.`]),
      ...(query === null || /\b_inserted_at\b|\*/.test(query)
        ? []
        : ['PostHog adds the column _inserted_at to the files of a query. Select it to keep it.']),
    ],
  };
}

/** The query that defines the columns: some versions return it in `schema` only. */
function queryOf({ hogql_query, schema }: PosthogExport): string | null {
  if (hogql_query) return hogql_query;
  const ofSchema =
    typeof schema === 'object' && schema !== null && 'hogql_query' in schema && schema.hogql_query;
  return typeof ofSchema === 'string' && ofSchema !== '' ? ofSchema : null;
}

const filterFields = ['type', 'key', 'operator', 'value'];

/** A filter, and its fields that have a value and no meaning here. */
function filterOf(given: unknown): { readonly filter: unknown; readonly unknown: readonly string[] } {
  if (typeof given !== 'object' || given === null) return { filter: given, unknown: [] };
  const fields = Object.entries(given).filter(([, value]) => value !== null && value !== undefined);
  return {
    filter: Object.fromEntries(fields.filter(([field]) => filterFields.includes(field))),
    unknown: fields.map(([field]) => field).filter((field) => !filterFields.includes(field)),
  };
}

/** What exportd says against something; null if it accepts it. */
function problemOf(check: () => unknown): string | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof CommandRejected || (error instanceof Error && error.name === 'DialectError'))
      return error.message;
    throw error;
  }
}

/** The config of a destination. */
interface Config {
  readonly fields: JsonObject;
  readonly decisions: readonly string[];
  readonly notes: readonly string[];
}

function configOf({ destination }: PosthogExport, model: Model): Config {
  const given = destination.config ?? {};
  const selects = (field: string) => field === 'include_events' || field === 'exclude_events';
  const same = sameFields.filter((field) => isGiven(given[field]));
  const used = model === 'events' ? same : same.filter((field) => !selects(field));
  const fields: JsonObject = {
    ...Object.fromEntries(used.map((field) => [field, given[field]])),
    prefix: typeof given.prefix === 'string' ? given.prefix.replace(/^\/+/, '') : '',
  };
  const unknown = Object.entries(given)
    .filter(([field, value]) => isGiven(value) && !knownFields.includes(field))
    .map(([field]) => field);
  const eventsOfPersons = used.length < same.length;
  const integration = destination.integration ?? null;
  const lacksEndpoint = destination.type === 'S3Compatible' && fields.endpoint_url === undefined;
  const problem = problemOf(() => checkConfig(fields));
  // Without one, apply would write to a bucket of AWS that happens to have the name.
  if (lacksEndpoint) fields.endpoint_url = 'to be filled in';
  return {
    fields,
    decisions: [
      ...(lacksEndpoint
        ? [
            `Fill in endpoint_url: PostHog keeps it in the integration ${textOf(integration)}, which its API does not show.`,
          ]
        : []),
      ...(problem === null ? [] : [`The destination cannot be used here: ${problem}`]),
    ],
    notes: [
      ...(integration === null
        ? []
        : [
            `Its credentials are those of the integration ${textOf(integration)} of PostHog. If that has a role, write role_arn instead of the two keys.`,
          ]),
      ...(unknown.length === 0
        ? []
        : [`The fields ${unknown.join(', ')} of its config are left out: exportd has none.`]),
      ...(eventsOfPersons
        ? ['Its include_events and exclude_events have no effect on persons, and are left out.']
        : []),
      ...fileNotes(given, textOf(fields.prefix)),
    ],
  };
}

/** Whether a field has a value: all of them have an empty one by default. */
const isGiven = (value: unknown): boolean =>
  value !== null && value !== undefined && value !== '' && value !== false && textOf(value) !== '[]';

/** @throws CommandRejected */
function checkFilter(filter: unknown, model: Model): void {
  const { filters } = checkConfig({ bucket_name: 'bucket', region: 'region', prefix: '', filters: [filter] });
  rejectSelectionForModel({ filters }, model);
}

/** @throws CommandRejected. What the server allows is its own decision, so addresses and credentials are not checked. */
function checkConfig(fields: JsonObject): S3Config {
  const secrets = { aws_access_key_id: 'key', aws_secret_access_key: 'secret' };
  return parseS3Config(
    { ...fields, ...secrets },
    {
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true,
      EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: false,
      EXPORTD_ROLE_ACCOUNTS: undefined,
    },
  );
}

/** How the keys of files differ. */
function fileNotes(given: JsonObject, prefix: string): string[] {
  const hasTime = /\{(year|month|day|hour|minute|second|data_interval_start|data_interval_end)\}/.test(
    prefix,
  );
  const hadCodec =
    given.file_format === 'Parquet' &&
    (given.compression ?? null) !== null &&
    given.legacy_parquet_extension !== false;
  return [
    ...(hasTime
      ? [
          'The dates of its prefix are those of the start of an interval here, in UTC; in PostHog they are those of its end.',
        ]
      : []),
    ...(hadCodec
      ? ['Files end in .parquet here. In PostHog they can end in the compression, such as .parquet.zst.']
      : []),
    ...((given.max_file_size_mb ?? null) === null || given.max_file_size_mb === 0
      ? []
      : [
          "Each interval has a manifest here, in the folder _manifests. PostHog's …_manifest.json beside the files has no successor.",
        ]),
  ];
}

const modelNotes = (model: Model): string[] =>
  model === 'persons'
    ? [
        "Persons that do not change after the seam are only in PostHog's files: keep those. Readers take the highest person_version and person_distinct_id_version, as before.",
      ]
    : [];

/** The intervals before the seam that PostHog still owes. */
function failedRuns(runs: readonly OldRun[], seam: Seam): string[] {
  const completed = new Set(
    runs.filter(({ status }) => status === 'Completed').map(({ data_interval_end }) => data_interval_end),
  );
  const active = ['Completed', 'Running', 'Starting'];
  const owed = runs.filter(
    ({ status, data_interval_end }) =>
      !active.includes(status) &&
      !completed.has(data_interval_end) &&
      Date.parse(data_interval_end) <= Date.parse(seam.last.end),
  );
  return owed.map(
    ({ status, data_interval_start, data_interval_end }) =>
      `Its interval from ${data_interval_start ?? 'the first row'} to ${data_interval_end} is ${status} in PostHog: retry it there.`,
  );
}
