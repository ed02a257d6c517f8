/** Whether two exports would write the same keys. */
import type { Model } from '../domain/batch_export.ts';
import { locationOf } from './bucket_location.ts';
import { fileFolder, type FolderFields, isVariable, type PrefixVariable } from './prefix.ts';

/** What determines the keys that an export writes: its stored config, without secrets, and its model. */
export interface KeySource {
  readonly config: Readonly<Record<string, unknown>>;
  readonly model: Model;
}

/** The fields of a stored config that determine its keys below the bucket. */
interface KeyFields extends FolderFields {
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
    locationOf(one.config) === locationOf(other.config) &&
    canShareExtension(first, second) &&
    prefixesOverlap(
      { template: fileFolder(first), table: one.model },
      { template: fileFolder(second), table: other.model },
    )
  );
}

/** Every stored config was validated and has these fields. */
const fieldsOf = ({ config }: KeySource): KeyFields => config as unknown as KeyFields;

/** Whether both can write keys with the same extension. Rejected rows are JSON lines for every format. */
const canShareExtension = (one: KeyFields, other: KeyFields): boolean =>
  extensionOf(one) === extensionOf(other) || (one.on_bad_row === 'reject' && other.on_bad_row === 'reject');

/** Parquet compresses inside the file, so its extension does not depend on the compression. */
const extensionOf = ({ file_format, compression }: KeyFields): string =>
  file_format === 'Parquet' ? file_format : `${file_format} ${compression ?? ''}`;

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
