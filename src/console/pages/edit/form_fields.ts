type Section = 'Export' | 'Bucket' | 'Credentials' | 'Files' | 'Rows' | 'Schedule' | 'More';

/** How a value is entered. `lines` are texts, one per line. */
type Control =
  | 'text'
  | 'secret'
  | 'number'
  | 'checkbox'
  | 'select'
  | 'time'
  | 'dialect'
  | 'lines'
  | 'filters';

/** A field of the form. */
export interface FormField {
  readonly section: Section;
  /** Its path in the body, joined by `__`, as errors of the API name it. */
  readonly attr: string;
  readonly label: string;
  readonly control: Control;
  readonly hint?: string;
  readonly required?: boolean;
  /** Its values are long, so it has the width of the form. */
  readonly isWide?: boolean;
  /** The options of a `select`. */
  readonly choices?: readonly string[];
  /** Suggested values: these, the project's most frequent events, or all time zones. */
  readonly suggestions?: readonly string[] | 'events' | 'timezones';
  /** What the API takes when the field is missing. */
  readonly default?: string | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
}

const field = (
  section: Section,
  attr: string,
  label: string,
  control: Control,
  more: Partial<FormField> = {},
): FormField => ({ section, attr, label, control, ...more });

const minutes = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30];

/** The labels of the filter types that the form offers. Filters of other types are kept. */
export const filterTypes: Readonly<Record<string, string>> = {
  event: 'Event property',
  person: 'Person property',
  event_metadata: 'Event field',
  hogql: 'SQL expression',
};

/** The labels of the operators that the form offers. Filters with others, most of them synonyms, are kept. */
export const filterOperators: Readonly<Record<string, string>> = {
  exact: 'equals',
  is_not: 'does not equal',
  icontains: 'contains',
  not_icontains: 'does not contain',
  regex: 'matches',
  not_regex: 'does not match',
  gt: 'is greater than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  between: 'is between',
  not_between: 'is not between',
  is_set: 'is set',
  is_not_set: 'is not set',
  is_date_exact: 'is at the date',
  is_date_before: 'is before',
  is_date_after: 'is after',
};

/** Whether a filter has an operator: the key of an SQL expression is the whole condition. */
export const hasOperator = ({ type }: FilterRow): boolean => type !== 'hogql' && type !== 'dialect';

/** Whether a filter compares with a value. */
export const hasValue = (row: FilterRow): boolean =>
  hasOperator(row) && row.operator !== 'is_set' && row.operator !== 'is_not_set';

/** The fields, section by section. `test/console/edit` compares them with the schema of a new export. */
export const fields: readonly FormField[] = [
  field('Export', 'name', 'Name', 'text', { required: true }),
  field('Export', 'model', 'Model', 'select', {
    hint: 'The rows that are exported: events by default.',
    choices: ['events', 'persons'],
    default: 'events',
  }),
  field('Export', 'interval', 'Interval', 'select', {
    hint: 'How much time each run exports.',
    choices: ['hour', 'day', 'week', 'month', ...minutes.map((count) => `every ${count} minutes`)],
    default: 'hour',
  }),

  field('Bucket', 'destination__type', 'Destination', 'select', {
    required: true,
    choices: ['S3'],
    default: 'S3',
  }),
  field('Bucket', 'destination__config__bucket_name', 'Bucket', 'text', { required: true }),
  field('Bucket', 'destination__config__region', 'Region', 'text', {
    hint: 'The region of the bucket. Servers other than AWS often accept us-east-1.',
    required: true,
    suggestions: ['eu-central-1', 'us-east-1', 'eu-west-1', 'us-west-2', 'auto'],
  }),
  field('Bucket', 'destination__config__prefix', 'Prefix', 'text', {
    hint:
      'Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} ' +
      "{data_interval_end} {table}. Dates are those of the interval's start in UTC.",
    required: true,
    isWide: true,
    suggestions: ['events/{year}/{month}/{day}'],
  }),
  field('Bucket', 'destination__config__endpoint_url', 'Endpoint URL', 'text', {
    hint: 'The URL of a server other than AWS.',
  }),

  field('Credentials', 'destination__config__aws_access_key_id', 'Access key ID', 'secret', {
    hint: 'With the secret access key, unless exportd assumes a role with its own credentials.',
  }),
  field('Credentials', 'destination__config__aws_secret_access_key', 'Secret access key', 'secret'),
  field('Credentials', 'destination__config__role_arn', 'Role ARN', 'text', {
    hint: 'A role that is assumed with the access key, or with the credentials of the machine.',
  }),

  field('Files', 'destination__config__file_format', 'File format', 'select', {
    choices: ['JSONLines', 'CSV', 'Parquet'],
    default: 'JSONLines',
  }),
  field('Files', 'destination__config__compression', 'Compression', 'select', {
    hint: 'JSONLines and CSV: gzip, zstd or brotli. Parquet: zstd, snappy, gzip, brotli or lz4.',
    choices: ['gzip', 'zstd', 'brotli', 'snappy', 'lz4'],
  }),
  field('Files', 'destination__config__table_format', 'Table format', 'select', {
    hint:
      'Parquet: publish each interval as a commit of a Delta table under the constant part of the prefix. exportd must be ' +
      'the only writer of the table. Empty for files and manifests alone.',
    choices: ['delta'],
  }),
  field('Files', 'destination__config__partition_by', 'Partition by', 'lines', {
    hint:
      'Partitions of the files, from the start of their interval in UTC: date, or date and hour, one per line. Keys get ' +
      'folders like date=2026-11-01/hour=07, and tables these columns. A change applies to the intervals that are ' +
      'exported from then on; a table keeps its partitions. Empty for none.',
    suggestions: ['date', 'hour'],
  }),
  field('Files', 'destination__config__max_file_size_mb', 'Largest file (MiB)', 'number', {
    hint: 'The size at which the next file of an interval starts. Empty for one file.',
    minimum: 0,
  }),

  field('Rows', 'destination__config__include_events', 'Include events', 'lines', {
    hint: 'Names of the only events that are exported. Empty for all.',
    suggestions: 'events',
  }),
  field('Rows', 'destination__config__exclude_events', 'Exclude events', 'lines', {
    hint: 'Names of events that are not exported.',
    suggestions: 'events',
  }),
  field('Rows', 'destination__config__filters', 'Filters', 'filters', {
    hint: 'Conditions on properties, all of which have to hold.',
  }),
  field('Rows', 'dialect_query', 'SQL', 'dialect', {
    isWide: true,
    hint:
      'A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are ' +
      'exported unchanged.',
  }),

  field('Schedule', 'timezone', 'Timezone', 'text', {
    hint: 'An IANA time zone, in which days, weeks and months start. Empty for UTC.',
    suggestions: 'timezones',
  }),
  field('Schedule', 'offset_hour', 'Offset hour', 'number', {
    hint: 'For intervals of a day or longer: the hour that they start at.',
    minimum: 0,
    maximum: 23,
  }),
  field('Schedule', 'offset_day', 'Offset day', 'number', {
    hint: 'For a week: days after its Sunday, at most 6. For a month: days after its first.',
    minimum: 0,
    maximum: 27,
  }),
  field('Schedule', 'paused', 'Paused', 'checkbox', { hint: 'A paused export starts no runs.' }),
  field('Schedule', 'start_at', 'Start at', 'time', {
    hint: 'Intervals that end before this time are not exported. In UTC.',
  }),
  field('Schedule', 'end_at', 'End at', 'time', {
    hint: 'Intervals that end after this time are not exported. In UTC.',
  }),

  field(
    'More',
    'destination__config__use_virtual_style_addressing',
    'Use virtual style addressing',
    'checkbox',
    {
      hint: 'Whether the name of the bucket is part of the host name. AWS does so always.',
    },
  ),
  field('More', 'destination__config__compression_level', 'Compression level', 'number', {
    hint: 'gzip: 1 to 9, zstd: 1 to 19, brotli: 0 to 11; higher is smaller and slower. Empty for gzip 5, zstd 1, brotli 4.',
  }),
  field('More', 'destination__config__bloom_filters', 'Bloom filters', 'checkbox', {
    hint:
      'Parquet: bloom filters of uuid and distinct_id, with which Spark and DuckDB skip row groups without a value. Files ' +
      'get 4 % larger.',
  }),
  field('More', 'destination__config__on_bad_row', 'On bad row', 'select', {
    hint:
      'Rows that the format cannot represent, or that PostgreSQL cannot read: fail the run, or write them to a ' +
      '-rejected.jsonl file that the manifest references.',
    choices: ['fail', 'reject'],
    default: 'fail',
  }),
  field('More', 'destination__config__on_missing_rows', 'On missing rows', 'select', {
    hint:
      'Rows that were exported and are no longer in the source, when their interval is exported again: keep them in the ' +
      'bucket, or follow the source and remove them.',
    choices: ['keep', 'follow'],
    default: 'keep',
  }),
  field('More', 'destination__config__encryption', 'Encryption', 'select', {
    hint: 'Server-side encryption. Empty for that of the bucket.',
    choices: ['AES256', 'aws:kms'],
  }),
  field('More', 'destination__config__kms_key_id', 'KMS key ID', 'text', { hint: 'The key of aws:kms.' }),
  field('More', 'retention_days', 'Retention days', 'number', {
    hint:
      'The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after ' +
      'objects were written: what is older and missing is expired, not lost.',
    minimum: 1,
    maximum: 36_500,
  }),
];

/** What choices mean, where the word of the API does not say it. */
const choiceLabels: Readonly<Record<string, string>> = {
  'every 1 minutes': 'every minute',
  fail: 'fail the run',
  reject: 'write them to a file of their own',
  keep: 'keep them in the bucket',
  follow: 'remove them from the bucket',
  delta: 'Delta',
};
export const labelOfChoice = (choice: string): string => choiceLabels[choice] ?? choice;

const fieldNamed = (name: string): FormField | undefined => {
  const attr = name.replaceAll('.', '__');
  return fields.find((one) => one.attr === attr || one.attr === `destination__config__${attr}`);
};

/** The label of a field by its name in the API, with or without its place; the name of one that the form lacks. */
export const labelOf = (name: string): string => fieldNamed(name)?.label ?? name;

/** A message of the API with the labels of the form in place of its names of fields. */
export const inWords = (message: string): string =>
  message
    .replaceAll(' (exportd export difference)', '')
    .replaceAll('with `{"backfill": true}`', 'with a backfill')
    .replaceAll(
      /[`']?\b([a-z]+(?:_[a-z]+)+)\b[`']?/g,
      (found, name: string) => fieldNamed(name)?.label ?? found,
    );

/** A value as the form shows it, on one line. */
export function valueInWords(name: string, value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  const control = fieldNamed(name)?.control;
  if (typeof value === 'string') return control === 'select' ? labelOfChoice(value) : value;
  if (!Array.isArray(value)) return JSON.stringify(value);
  if (value.length === 0) return 'none';
  return value
    .map((one: unknown) => (control === 'filters' ? filterInWords(one as FilterRow) : textOrJson(one)))
    .join(', ');
}

function filterInWords({ type = '', key = '', operator = 'exact', value }: Partial<FilterRow>): string {
  if (!hasOperator({ type, key, operator, value: '' })) return key;
  const compared = value === undefined ? [] : [jsonText(value)];
  const parts = [filterTypes[type] ?? type, key, filterOperators[operator] ?? operator.replaceAll('_', ' ')];
  return [...parts, ...compared].join(' ');
}

/** A filter as it is entered. Its value is JSON or a text. */
export type FilterRow = Readonly<Record<'type' | 'key' | 'operator' | 'value', string>>;

/** What is entered: text, whether a box is checked, or filters. */
export type Input = string | boolean | readonly FilterRow[];

/** The text of an input that is one. */
export const textOf = (input: Input | undefined): string => (typeof input === 'string' ? input : '');

/** The inputs of a form by `attr`. */
export type Inputs = Readonly<Record<string, Input>>;

/** What a new export starts with: the files that most programs read fastest. */
const suggestedBody = { destination: { config: { file_format: 'Parquet', compression: 'zstd' } } };

/** The inputs that show a body; without one, those of a new export. */
export const inputsOf = (stored: object | null): Inputs => {
  const body = stored ?? suggestedBody;
  return Object.fromEntries(
    fields.map((one) => [one.attr, toInput(one.control, valueAt(body, one) ?? one.default)]),
  );
};

const pathOf = ({ attr }: FormField): readonly string[] => attr.split('__');

function valueAt(body: object, one: FormField): unknown {
  let value: unknown = body;
  for (const key of pathOf(one))
    value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  return value;
}

function toInput(control: Control, value: unknown): Input {
  switch (control) {
    case 'checkbox':
      return value === true;
    case 'time':
      return typeof value === 'string' ? new Date(value).toISOString().slice(0, 16) : '';
    case 'lines':
      return Array.isArray(value) ? value.join('\n') : '';
    case 'filters':
      return Array.isArray(value) ? value.map(toFilterRow) : [];
    default:
      return textOrJson(value);
  }
}

const toFilterRow = ({ type, key, operator, value }: Readonly<Record<string, unknown>>): FilterRow => ({
  type: textOrJson(type),
  key: textOrJson(key),
  operator: textOrJson(operator),
  value: value === undefined ? '' : jsonText(value),
});

/** A text that is read back as the value: JSON, or a text without quotes unless it would be read as JSON. */
const jsonText = (value: unknown): string =>
  typeof value === 'string' && value !== '' && jsonOrText(value) === value ? value : JSON.stringify(value);

/** A text is shown without quotes; other values are JSON. */
const textOrJson = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

/** The value of an input; undefined when nothing was entered. */
function toValue(control: Control, input: Input): unknown {
  if (typeof input === 'boolean') return input;
  if (typeof input !== 'string') return input.length === 0 ? undefined : input.map(toFilter);
  if (input.trim() === '') return undefined;
  switch (control) {
    case 'number':
      return Number(input);
    case 'time':
      return `${input.slice(0, 16)}:00.000Z`;
    case 'lines':
      return input
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    default:
      return input;
  }
}

const toFilter = (row: FilterRow): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(row)
      .filter(([, text]) => text !== '')
      .map(([name, text]) => [name, name === 'value' ? jsonOrText(text) : text]),
  );

/** `["a", "b"]` and `42` are JSON; `Firefox` is a text. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** The body that creates an export: what was entered, without what is the default. */
export const createBodyOf = (inputs: Inputs): Record<string, unknown> =>
  bodyOf((one) => {
    const value = toValue(one.control, inputs[one.attr] ?? '');
    const isDefault =
      !one.required && value === (one.default ?? (one.control === 'checkbox' ? false : undefined));
    return isDefault ? undefined : value;
  });

/** The body that changes an export: what differs from before. What was emptied is reset; a secret that was not entered is kept. */
export const updateBodyOf = (inputs: Inputs, before: Inputs): Record<string, unknown> =>
  bodyOf((one) => {
    const input = inputs[one.attr] ?? '';
    return JSON.stringify(input) === JSON.stringify(before[one.attr])
      ? undefined
      : (toValue(one.control, input) ?? null);
  });

/** A body with a sign in place of each secret, for lines that are shown and copied. */
export const withoutSecrets = (body: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  bodyOf((one) => {
    const value = valueAt(body, one);
    return one.control === 'secret' && value !== undefined && value !== null ? '…' : value;
  });

/** A body without secrets: the command line asks for those of a new export. */
export const publicPartOf = (body: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  bodyOf((one) => (one.control === 'secret' ? undefined : valueAt(body, one)));

/** A body with a value for each field that has one. */
function bodyOf(valueOf: (one: FormField) => unknown): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const one of fields) {
    const value = valueOf(one);
    if (value === undefined) continue;
    const path = pathOf(one);
    let target = body;
    for (const key of path.slice(0, -1)) target = (target[key] ??= {}) as Record<string, unknown>;
    target[path.at(-1) ?? ''] = value;
  }
  return body;
}

/** The field that an error is about: that of its `attr`, or the one that contains it. */
export const fieldOfError = (attr: string | null): FormField | undefined =>
  attr === null ? undefined : fields.find((one) => attr === one.attr || attr.startsWith(`${one.attr}__`));
