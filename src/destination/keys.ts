/**
 * The keys of objects: partitions, prefixes and their variables, the names of files and manifests, the folder of a table, and
 * whether two exports would write the same keys.
 */
import { type Model, models } from '../domain/batch_export.ts';
import { hasControlCharacters } from '../domain/control_characters.ts';
import type { RunSpec } from '../domain/run_state.ts';

/** The columns that files can be partitioned by, in the order of their folders. They depend on the interval alone. */
export const partitionColumns = ['date', 'hour'] as const;
export type PartitionColumn = (typeof partitionColumns)[number];

/** The values of partitions, as keys and manifests have them: `{date: '2026-11-01', hour: '07'}`. */
type Partition = Readonly<Partial<Record<PartitionColumn, string>>>;

/** Their values as variables of a prefix: the start of the interval in UTC. */
const partitionTemplates = { date: '{year}-{month}-{day}', hour: '{hour}' };

/** The partitions of a stored config, or of one of a request that was validated. Those of former versions have none. */
export const partitionColumnsOf = (config: Readonly<Record<string, unknown>>): readonly PartitionColumn[] =>
  (config as { partition_by?: readonly PartitionColumn[] | null }).partition_by ?? [];

/** The values of the partitions of an interval. @param start its start, ISO 8601 */
export function partitionOf(start: string, columns: readonly PartitionColumn[]): Partition {
  const time = new Date(start).toISOString();
  const values = { date: time.slice(0, 10), hour: time.slice(11, 13) };
  return Object.fromEntries(columns.map((column) => [column, values[column]]));
}

/** The values of partitions that a key of a file has; none for a file from before its export had them. */
export const partitionIn = (key: string, columns: readonly PartitionColumn[]): Partition =>
  Object.fromEntries(
    columns.flatMap((column) => {
      const segment = key.split('/').find((part) => part.startsWith(`${column}=`));
      return segment === undefined ? [] : [[column, segment.slice(column.length + 1)]];
    }),
  );

/** Identifies a file of an interval. */
export interface FileIdentity {
  /** The generation: how often the interval was exported, from 1. */
  readonly generation: number;
  /** The range of the interval, from 0, if several are exported in parallel; else null. */
  readonly range: number | null;
  /** The number of the file, from 0, if files have a maximum size; else null. */
  readonly file: number | null;
  /** Makes the key unique where the store has no conditional writes; else null. */
  readonly mark: string | null;
}

/** The fields of a run that determine the keys of its interval. */
export type KeySpec = Pick<
  RunSpec,
  'batch_export_id' | 'model' | 'data_interval_start' | 'data_interval_end'
>;

/** The variables of a prefix. They depend on the run only, never on the clock. */
export const prefixVariables = [
  'year',
  'month',
  'day',
  'hour',
  'minute',
  'second',
  'data_interval_start',
  'data_interval_end',
  'table',
] as const;
type PrefixVariable = (typeof prefixVariables)[number];

/** Whether a name is a variable. */
const isVariable = (name: string): name is PrefixVariable =>
  (prefixVariables as readonly string[]).includes(name);

/**
 * Folders below a prefix, which has none of them itself. Readers take every file in a folder for one with its rows, except below a
 * name that begins with an underscore: Spark and pyarrow open no folder of Parquet with another file in it, and one of JSON lines
 * would count the rejected rows.
 */
export const reservedFolders = {
  manifests: '_manifests',
  rejectedRows: '_rejected',
  tests: '_exportd_test',
  probes: '_exportd_probe',
  tableLog: '_delta_log',
};

/** Returns why a template is not a valid prefix; null if it is. */
export function prefixProblem(template: string): string | null {
  if (template.startsWith('/')) return `The prefix must not start with "/".`;
  if (hasControlCharacters(template) || template.includes('\\'))
    return 'The prefix must not contain control characters, line breaks or backslashes.';
  const segments = template.replace(/\/$/, '').split('/');
  const reserved = segments.find((segment) => Object.values(reservedFolders).includes(segment));
  if (reserved !== undefined)
    return `The prefix must not contain the path segment "${reserved}": exportd and readers give it a meaning of its own.`;
  if (segments.some((segment) => segment === '..' || segment === '.'))
    return 'The prefix must not contain the path segments "." and "..".';
  if (segments.length > 1 && segments.includes('')) return 'The prefix must not contain "//".';
  for (const [, name] of template.matchAll(/\{([^{}]*)\}/g))
    if (!isVariable(name ?? ''))
      return `The prefix contains the unknown variable {${name}}. Available variables: ${prefixVariables.map((known) => `{${known}}`).join(', ')}.`;
  if (/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, '')))
    return 'The prefix contains an unbalanced brace. Write variables like {year}.';
  return null;
}

/** Renders a validated template without a trailing slash; '' for no prefix. */
const renderPrefix = (template: string, values: Readonly<Record<PrefixVariable, string>>): string =>
  template
    .replaceAll(/\{([^{}]*)\}/g, (text, name: string) => (isVariable(name) ? values[name] : text))
    .replace(/\/$/, '');

/** The fields of a config that decide about the folders of files. Stored configs of former versions have no partitions. */
interface FolderFields {
  readonly prefix: string;
  readonly partition_by?: readonly PartitionColumn[];
}

/** The template of the folders of files: the prefix, and a folder for each partition, as Hive names them. */
export const fileFolder = ({ prefix, partition_by = [] }: FolderFields): string =>
  join(prefix.replace(/\/$/, ''), ...partition_by.map((column) => `${column}=${partitionTemplates[column]}`));

/** Returns why a valid prefix cannot be followed by partitions; null if it can. */
export function partitionProblem({ prefix, partition_by = [] }: FolderFields): string | null {
  if (partition_by.length === 0) return null;
  if (prefix.replaceAll('{table}', '').includes('{'))
    return 'With partition_by the prefix must have no time in it, such as events or {table}: the folders of the partitions have it.';
  const taken = partition_by.find((column) =>
    prefix.split('/').some((part) => part.startsWith(`${column}=`)),
  );
  return taken === undefined
    ? null
    : `The prefix has the partition ${taken} already, which partition_by adds to it. Remove it from the prefix.`;
}

/** The path segments before the first variable, which are the same for all intervals. */
export function constantPrefix(template: string): string {
  const segments = template.replace(/\/$/, '').split('/');
  const firstVariable = segments.findIndex((segment) => segment.includes('{'));
  return (firstVariable === -1 ? segments : segments.slice(0, firstVariable)).join('/');
}

/**
 * A character of a rendered prefix: a literal character of the template, or the name of a digit of a time, such as
 * `start.month.0`.
 */
type PrefixSymbol = string;

const isLiteral = (symbol: PrefixSymbol): boolean => symbol.length === 1;

/** The values of the parts of a time. Interval bounds are whole minutes. */
const parts: Readonly<
  Record<string, { readonly digits: number; readonly min: number; readonly max: number }>
> = {
  year: { digits: 4, min: 0, max: 9_999 },
  month: { digits: 2, min: 1, max: 12 },
  day: { digits: 2, min: 1, max: 31 },
  hour: { digits: 2, min: 0, max: 23 },
  minute: { digits: 2, min: 0, max: 59 },
  second: { digits: 2, min: 0, max: 0 },
};
const bounds = ['start', 'end'] as const;

const digitSymbols = (bound: string, part: string): PrefixSymbol[] =>
  Array.from({ length: parts[part]?.digits ?? 0 }, (_, digit) => `${bound}.${part}.${digit}`);

const timeSymbols = (bound: string): PrefixSymbol[] => [
  ...['year', 'month', 'day'].flatMap((part) => digitSymbols(bound, part)),
  'T',
  ...['hour', 'minute', 'second'].flatMap((part) => digitSymbols(bound, part)),
  'Z',
];

function variableSymbols(variable: PrefixVariable, table: string): PrefixSymbol[] {
  if (variable === 'table') return table.split('');
  if (variable === 'data_interval_start') return timeSymbols('start');
  if (variable === 'data_interval_end') return timeSymbols('end');
  return digitSymbols('start', variable);
}

const symbolsOf = ({ template, table }: PrefixTemplate): PrefixSymbol[] =>
  template
    .replace(/\/$/, '')
    .split(/\{([^{}]*)\}/)
    .flatMap((fragment, position) =>
      position % 2 === 1 && isVariable(fragment) ? variableSymbols(fragment, table) : fragment.split(''),
    );

/** A validated template, and the value of `{table}`. */
interface PrefixTemplate {
  readonly template: string;
  readonly table: string;
}

/**
 * Whether two templates render the same path for some interval, for example `{year}` and a literal year. All
 * variables except the table have a fixed length, so the templates are compared position by position: symbols at the
 * same position must be equal. The result may be a false positive: impossible dates such as February 31 are not
 * excluded.
 */
export function prefixesOverlap(one: PrefixTemplate, other: PrefixTemplate): boolean {
  const symbols = symbolsOf(one);
  const others = symbolsOf(other);
  if (symbols.length !== others.length) return false;
  const equals = new Map<PrefixSymbol, ReadonlySet<PrefixSymbol>>();
  const equalTo = (symbol: PrefixSymbol): ReadonlySet<PrefixSymbol> =>
    equals.get(symbol) ?? new Set([symbol]);
  for (const [position, symbol] of symbols.entries()) {
    const joined = new Set([...equalTo(symbol), ...equalTo(others[position] ?? symbol)]);
    for (const equal of joined) equals.set(equal, joined);
  }
  const literalOf = (symbol: PrefixSymbol): PrefixSymbol | undefined => [...equalTo(symbol)].find(isLiteral);
  return (
    [...equals.values()].every((joined) => [...joined].filter(isLiteral).length < 2) &&
    bounds.every((bound) =>
      Object.keys(parts).every((part) => hasValue(part, digitSymbols(bound, part).map(literalOf))),
    )
  );
}

/** Whether a part can have these digits, some of which are unknown. */
function hasValue(part: string, known: readonly (PrefixSymbol | undefined)[]): boolean {
  const { digits = 0, min = 0, max = 0 } = parts[part] ?? {};
  for (let value = min; value <= max; value++) {
    const text = String(value).padStart(digits, '0');
    if (known.every((digit, position) => digit === undefined || digit === text[position])) return true;
  }
  return false;
}

/** S3's limit of the key length in bytes of UTF-8. */
const maxKeyBytes = 1_024;

/** `20261101T100000Z`: sorts by time and needs no escaping. */
const compactTime = (time: string): string => new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '');

const intervalName = (spec: KeySpec): string =>
  `${compactTime(spec.data_interval_start)}-${compactTime(spec.data_interval_end)}`;

const join = (...segments: readonly string[]): string =>
  segments.filter((segment) => segment !== '').join('/');

/**
 * The key of a data file: `<prefix>/<start>-<end>[-[<range>.]<file>][-g<generation>][-<mark>].<extension>`. Generations
 * after the first include their number, so no key is written twice.
 */
export const fileKey = (prefix: string, spec: KeySpec, file: FileIdentity, extension: string): string =>
  intervalKey(prefix, spec, `${fileSuffix(file)}${generationSuffix(file)}.${extension}`);

/** Matches the keys of a file, with any mark or none. */
export function fileKeyPattern(
  prefix: string,
  spec: KeySpec,
  file: Omit<FileIdentity, 'mark'>,
  extension: string,
): { readonly commonPrefix: string; matches: (key: string) => boolean } {
  const suffix = `.${extension}`;
  const commonPrefix = fileKey(prefix, spec, { ...file, mark: null }, extension).slice(0, -suffix.length);
  return {
    commonPrefix,
    matches: (key) =>
      key.startsWith(commonPrefix) &&
      key.endsWith(suffix) &&
      /^(-[0-9a-f]{8})?$/.test(key.slice(commonPrefix.length, -suffix.length)),
  };
}

function intervalKey(prefix: string, spec: KeySpec, suffix: string): string {
  const start = compactTime(spec.data_interval_start);
  const path = renderPrefix(prefix, {
    year: start.slice(0, 4),
    month: start.slice(4, 6),
    day: start.slice(6, 8),
    hour: start.slice(9, 11),
    minute: start.slice(11, 13),
    second: start.slice(13, 15),
    data_interval_start: start,
    data_interval_end: compactTime(spec.data_interval_end),
    table: spec.model,
  });
  return join(path, `${intervalName(spec)}${suffix}`);
}

function fileSuffix({ range, file }: FileIdentity): string {
  if (range !== null) return `-${range}.${file ?? 0}`;
  return file === null ? '' : `-${file}`;
}

const generationSuffix = ({ generation, mark }: Pick<FileIdentity, 'generation' | 'mark'>): string =>
  `${generation > 1 ? `-g${generation}` : ''}${mark === null ? '' : `-${mark}`}`;

/** The key of an interval's manifest. It does not depend on the variables of the prefix. */
export const manifestKey = (prefix: string, spec: KeySpec): string =>
  manifestFolder(prefix, spec.batch_export_id) + `${intervalName(spec)}.json`;

/** The prefix of the keys of all manifests of an export. */
export const manifestFolder = (prefix: string, batchExportId: string): string =>
  `${join(constantPrefix(prefix), reservedFolders.manifests, batchExportId)}/`;

/** The key of the object that a destination test writes and deletes. */
export const testKey = (prefix: string, testId: string): string =>
  join(constantPrefix(prefix), reservedFolders.tests, testId);

/** A key below the prefix that nothing is written to: the credentials may be restricted to it. */
export const probeKey = (prefix: string): string => join(constantPrefix(prefix), reservedFolders.probes);

/** The largest number in a key, for checking key lengths. */
const maxNumber = 999_999;
const longestExtension = 'jsonl.zst';

/** Returns why keys under this prefix may exceed S3's limit; null if they fit. */
export function keyLengthProblem(prefix: string): string | null {
  const longest: KeySpec = {
    batch_export_id: '00000000-0000-0000-0000-000000000000',
    model: models.reduce((one, other) => (other.length > one.length ? other : one)),
    data_interval_start: '2026-11-01T10:00:00Z',
    data_interval_end: '2026-11-01T11:00:00Z',
  };
  const file = { generation: maxNumber, range: maxNumber, file: maxNumber, mark: 'ffffffff' };
  const keys = [
    fileKey(prefix, longest, file, longestExtension),
    rejectedKey({ prefix }, longest, file),
    manifestKey(prefix, longest),
  ];
  const length = Math.max(...keys.map((key) => Buffer.byteLength(key)));
  return length > maxKeyBytes
    ? `The prefix is too long: keys would have up to ${length} bytes. S3 allows ${maxKeyBytes}.`
    : null;
}

/** What determines the keys that an export writes: its stored config, without secrets, and its model. */
export interface KeySource {
  readonly config: Readonly<Record<string, unknown>>;
  readonly model: Model;
}

/** The fields of a stored config that determine its keys. */
interface KeyFields extends FolderFields {
  readonly bucket_name: string;
  readonly region: string;
  readonly endpoint_url: string | null;
  readonly file_format: string;
  readonly compression: string | null;
  readonly on_bad_row: string;
}

/**
 * Whether two exports write the same keys for a common interval. Manifests never collide, because their keys contain
 * the id of the export.
 */
export function keysCollide(one: KeySource, other: KeySource): boolean {
  const first = fieldsOf(one);
  const second = fieldsOf(other);
  return (
    isSameBucket(first, second) &&
    canShareExtension(first, second) &&
    prefixesOverlap(
      { template: fileFolder(first), table: one.model },
      { template: fileFolder(second), table: other.model },
    )
  );
}

/** Every stored config was validated and has these fields. */
const fieldsOf = ({ config }: KeySource): KeyFields => config as unknown as KeyFields;

/** Whether two configs lead to the same bucket. */
const isSameBucket = (
  one: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>,
  other: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>,
): boolean => bucketIdentity(one) === bucketIdentity(other);

/** Server and bucket of a stored config, which determine the traits of its store. */
export const locationOf = (config: Readonly<Record<string, unknown>>): string =>
  bucketIdentity(config as unknown as KeyFields);

const bucketIdentity = (config: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>): string =>
  `${storeOf(config)}/${config.bucket_name}`;

/**
 * Where requests with the secrets are sent: scheme, host, port and path. When it changes, stored secrets are not reused and
 * must be given again.
 */
export function serverOf({ endpoint_url }: Readonly<Record<string, unknown>>): string {
  if (typeof endpoint_url !== 'string') return '';
  const { protocol, host, pathname } = new URL(endpoint_url);
  return `${protocol}//${host}${pathname.replace(/\/+$/, '')}`;
}

const awsRegion = '[a-z]{2}(?:-[a-z]+)+-\\d';
/** The endpoints of S3 itself. Any customer of AWS can have another host below amazonaws.com: a machine, a load balancer. */
const amazonHost = new RegExp(
  `^(?:s3(?:-fips|-accelerate|-external-1)?(?:\\.dualstack)?(?:[.-]${awsRegion})?|` +
    `(?:bucket\\.)?vpce-[a-z0-9-]+\\.s3\\.${awsRegion}\\.vpce)\\.amazonaws\\.com(?:\\.cn)?$`,
);

/** Identifies a store, within which a bucket name is unique. In AWS it is a partition: standard, China or GovCloud. */
function storeOf({ endpoint_url, region }: Pick<KeyFields, 'endpoint_url' | 'region'>): string {
  const url = endpoint_url === null ? undefined : new URL(endpoint_url);
  const host = url?.hostname.replace(/\.$/, '');
  if (!url || !host || amazonHost.test(host)) return `aws ${/^(cn|us-gov)-/.exec(region)?.[1] ?? ''}`;
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return `${host}:${port}${url.pathname.replace(/\/+$/, '')}`;
}

/** Whether both can write keys with the same extension. Rejected rows are JSON lines for every format. */
const canShareExtension = (one: KeyFields, other: KeyFields): boolean =>
  extensionOf(one) === extensionOf(other) || (one.on_bad_row === 'reject' && other.on_bad_row === 'reject');

/** Parquet compresses inside the file, so its extension does not depend on the compression. */
const extensionOf = ({ file_format, compression }: KeyFields): string =>
  file_format === 'Parquet' ? file_format : `${file_format} ${compression ?? ''}`;

/** The folder of the table that files with this prefix belong to: the segments that no time changes. '' is the bucket. */
export const tableRoot = (template: string, model: Model): string =>
  constantPrefix(template.replaceAll('{table}', model));

/** Identifies the table of a stored config: server, bucket and folder; null without a table. */
export function tableLocationOf(config: Readonly<Record<string, unknown>>, model: Model): string | null {
  const { table_format, prefix } = config;
  if (typeof table_format !== 'string' || typeof prefix !== 'string') return null;
  return `${locationOf(config)}/${tableRoot(prefix, model)}`;
}

/** Returns why a valid prefix cannot be that of a table; null if it can. */
export function tablePrefixProblem(template: string): string | null {
  if (tableRoot(template, 'events') === '')
    return 'The first segment of the prefix of a table must have no time in it, such as events/{year}: the table is in that folder.';
  return null;
}

/** The key of the file with the rejected rows of a generation. */
export function rejectedKey(
  fields: FolderFields,
  spec: KeySpec,
  file: Pick<FileIdentity, 'generation' | 'mark'>,
): string {
  const key = intervalKey(fileFolder(fields), spec, `${generationSuffix(file)}-rejected.jsonl`);
  const root = tableRoot(fields.prefix, spec.model);
  const folder = join(root, reservedFolders.rejectedRows);
  return root === '' ? `${folder}/${key}` : `${folder}${key.slice(root.length)}`;
}
