import { stringifyJson } from './exact_numbers.ts';

/** The result of a query as rows, whatever its kind. */
export interface ResultTable {
  readonly columns: readonly string[];
  /** Pairs of name and ClickHouse type. */
  readonly types: readonly (readonly [name: string, type: string])[];
  readonly results: readonly (readonly unknown[])[];
}

/** The fields of a response of the query endpoint that a table is made of. */
export interface TabularResponse {
  readonly results?: unknown;
  readonly columns?: readonly string[] | null;
  readonly types?: readonly unknown[] | null;
}

/** A line of a trend, or of a funnel over time. */
interface TrendLine {
  readonly label?: string;
  readonly days: readonly string[];
  readonly data: readonly unknown[];
  readonly aggregated_value?: unknown;
  readonly breakdown_value?: unknown;
  readonly compare_label?: string;
}

/** A step of a funnel. */
interface FunnelStep {
  readonly name: string;
  readonly custom_name: string | null;
  readonly order: number;
  readonly count: number;
  readonly average_conversion_time: number | null;
  readonly median_conversion_time: number | null;
  readonly breakdown_value?: unknown;
}

const has =
  <Fields extends object>(...names: readonly (string & keyof Fields)[]) =>
  (value: unknown): value is Fields =>
    typeof value === 'object' && value !== null && names.every((name) => name in value);
const isLine = has<TrendLine>('days', 'data');
const isStep = has<FunnelStep>('order', 'average_conversion_time');

const tableOf = (
  types: readonly (readonly [name: string, type: string])[],
  results: readonly (readonly unknown[])[],
): ResultTable => ({ columns: types.map(([name]) => name), types, results });

/** The rows of a response: those of its columns; a row for each interval of a trend, and for each step of a funnel. */
export function toResultTable({ results = [], columns, types }: TabularResponse): ResultTable {
  if (columns && Array.isArray(results)) {
    const named = columns.map((name, index) => [name, typeName(types?.[index])] as const);
    return { columns, types: named, results: results as readonly (readonly unknown[])[] };
  }
  const items: readonly unknown[] = Array.isArray(results) ? results.flat() : [];
  if (items.length > 0 && items.every(isLine)) return tableOfLines(items);
  if (items.length > 0 && items.every(isStep)) return tableOfSteps(items);
  if (has<{ bins: readonly (readonly unknown[])[] }>('bins')(results))
    return tableOf(
      [
        ['seconds', 'Float64'],
        ['people', 'Int64'],
      ],
      results.bins,
    );
  const rows = Array.isArray(results) ? results.map((value: unknown) => [value]) : [[results]];
  return tableOf([['result', 'String']], rows);
}

/** Some kinds name only the types. */
const typeName = (type: unknown): string => String(Array.isArray(type) ? type[1] : (type ?? 'String'));

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  return typeof value === 'string' ? value : stringifyJson(value ?? null);
}

const nameOf = ({ label, breakdown_value, compare_label }: TrendLine): string => {
  const name = label ?? (breakdown_value === undefined ? 'converted, %' : valueText(breakdown_value));
  return compare_label === undefined ? name : `${name} (${compare_label})`;
};

function tableOfLines(lines: readonly TrendLine[]): ResultTable {
  const [first] = lines;
  if (first?.aggregated_value !== undefined)
    return tableOf(
      [
        ['series', 'String'],
        ['value', 'Float64'],
      ],
      lines.map((line) => [nameOf(line), line.aggregated_value]),
    );
  const days = first?.days ?? [];
  return tableOf(
    [
      ['time', days[0]?.length === 10 ? 'Date' : 'DateTime'],
      ...lines.map((line) => [nameOf(line), 'Float64'] as const),
    ],
    days.map((day, index) => [day, ...lines.map(({ data }) => data[index] ?? null)]),
  );
}

function tableOfSteps(steps: readonly FunnelStep[]): ResultTable {
  const isBrokenDown = steps.some(({ breakdown_value }) => breakdown_value !== undefined);
  const entered = new Map(
    steps.filter(({ order }) => order === 0).map((step) => [valueText(step.breakdown_value), step.count]),
  );
  return tableOf(
    [
      ['step', 'String'],
      ...(isBrokenDown ? [['breakdown', 'String'] as const] : []),
      ['people', 'Int64'],
      ['of the first step, %', 'Float64'],
      ['average seconds', 'Float64'],
      ['median seconds', 'Float64'],
    ],
    steps.map(({ order, custom_name, name, breakdown_value, count, ...times }) => {
      const value = valueText(breakdown_value);
      const of = entered.get(value) ?? 0;
      return [
        `${order + 1}. ${custom_name ?? name}`,
        ...(isBrokenDown ? [value] : []),
        count,
        of === 0 ? null : Math.round((10_000 * count) / of) / 100,
        times.average_conversion_time,
        times.median_conversion_time,
      ];
    }),
  );
}
