import { readFileSync } from 'node:fs';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import { megabytes, rounded, type ResultTable, type Statistics } from '../results.ts';
import type { Compared, ExportsBenchResult } from './exports_bench.ts';

/** A figure of two results. */
interface FigureChange {
  readonly now: number;
  readonly then: number;
  /** Relative to the earlier figure: -0.1 is a tenth less. */
  readonly change: number;
  /** Whether the ranges of the repeats overlap, so that the change may be noise. */
  readonly overlaps: boolean;
}

/** What a program and an earlier measurement of it differ in. Null where one of them has no such figure. */
interface ProgramComparison {
  readonly program: string;
  readonly figures: Readonly<Record<FigureName, FigureChange | null>>;
}

/** A result compared with an earlier one. */
export interface Comparison {
  /** When the earlier result was measured. */
  readonly then: string;
  /** Reasons why figures cannot be compared, as sentences. */
  readonly warnings: readonly string[];
  /** The programs that both results measured. */
  readonly programs: readonly ProgramComparison[];
}

const fixed = (digits: number) => (value: number) => value.toFixed(digits);

/** The compared figures with their headings and formats, ratios first: they depend least on the machine. */
const columns = {
  ratio_to_floor: ['÷ floor', fixed(2)],
  ratio_to_pipeline: ['÷ pipeline', fixed(2)],
  ratio_to_duckdb: ['÷ DuckDB', fixed(2)],
  ratio_to_adbc: ['÷ ADBC', fixed(2)],
  seconds: ['seconds', fixed(2)],
  cpu_seconds: ['CPU s', fixed(2)],
  peak_memory_bytes: ['peak MB', megabytes],
  bytes: ['size MB', megabytes],
  s3_requests: ['S3 requests', fixed(0)],
} as const;
type FigureName = keyof typeof columns;
const figureNames = Object.keys(columns) as FigureName[];

type Figures = Partial<Pick<Compared, FigureName>>;

/** Compares a result with an earlier one, for the programs that both measured. */
export function compareResults(now: ExportsBenchResult, then: ExportsBenchResult): Comparison {
  const earlier = programsOf(then);
  return {
    then: then.started_at,
    warnings: warningsOf(now, then),
    programs: [...programsOf(now)].flatMap(([program, figures]) => {
      const before = earlier.get(program);
      return before === undefined ? [] : [{ program, figures: changes(figures, before) }];
    }),
  };
}

function programsOf({ floor, pipeline, duckdb, exports }: ExportsBenchResult): Map<string, Figures> {
  const programs = new Map<string, Figures>([['floor', floor]]);
  if (!('skipped' in pipeline)) programs.set('shell pipeline', pipeline);
  if (!('skipped' in duckdb)) programs.set('DuckDB', duckdb);
  for (const one of exports) if (!('skipped' in one)) programs.set(`exportd ${one.format}`, one);
  return programs;
}

const changes = (now: Figures, then: Figures): ProgramComparison['figures'] => {
  const change = (name: FigureName) => changeOf(rangeOf(now[name]), rangeOf(then[name]));
  return Object.fromEntries(figureNames.map((name) => [name, change(name)])) as ProgramComparison['figures'];
};

type Range = Pick<Statistics, 'median' | 'minimum'> & { readonly maximum: number };

function rangeOf(value: Statistics | number | null | undefined): Range | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number') return { median: value, minimum: value, maximum: value };
  return { median: value.median, minimum: value.minimum, maximum: Math.max(...value.all) };
}

function changeOf(now: Range | null, then: Range | null): FigureChange | null {
  if (now === null || then === null) return null;
  return {
    now: now.median,
    then: then.median,
    change: rounded(now.median / then.median - 1),
    overlaps: now.minimum <= then.maximum && then.minimum <= now.maximum,
  };
}

function warningsOf(now: ExportsBenchResult, then: ExportsBenchResult): string[] {
  const described = (result: ExportsBenchResult): Record<string, unknown> => ({
    'number of events': result.events,
    'warm-up': result.warm,
    'crowded time': result.crowded ?? 'none',
    ...Object.fromEntries(
      Object.entries(result.machine).map(([name, value]) => [`machine's ${name}`, value]),
    ),
  });
  const before = described(then);
  return Object.entries(described(now))
    .filter(([name, value]) => value !== before[name])
    .map(([name, value]) => `The ${name} differs: ${String(value)} now, ${String(before[name])} then.`);
}

/** A comparison as a table whose cells are `now (then, change)`. */
export const comparisonTable = ({ then, warnings, programs }: Comparison): ResultTable => ({
  title: [
    '',
    `Compared with ${then}: now (then, change), with ~ where the ranges of the repeats overlap`,
    ...warnings,
  ].join('\n'),
  headings: ['export', ...figureNames.map((name) => columns[name][0])],
  rows: programs.map(({ program, figures }) => [
    program,
    ...figureNames.map((name) => cell(figures[name], columns[name][1])),
  ]),
});

function cell(figure: FigureChange | null, format: (value: number) => string): string {
  if (figure === null) return '-';
  const { now, then, change, overlaps } = figure;
  const percent = `${change > 0 ? '+' : ''}${(change * 100).toFixed(1)} %`;
  return `${format(now)} (${format(then)}, ${overlaps && change !== 0 ? '~' : ''}${percent})`;
}

/** Reads a result of `npm run bench` that `--save` wrote. @throws LaunchError when the file has none */
export function readSavedResult(file: string): ExportsBenchResult {
  let result: object;
  try {
    result = Object(JSON.parse(readFileSync(file, 'utf8'))) as object;
  } catch (error) {
    throw new LaunchError(`${file} cannot be read as a saved result. ${String(error)}`);
  }
  if ('floor' in result && 'exports' in result && 'duckdb' in result) return result as ExportsBenchResult;
  const found = 'large_interval' in result ? 'a result of bench workers' : 'not a saved result of bench';
  throw new LaunchError(`${file} is ${found}.`);
}
