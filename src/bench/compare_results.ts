import type { BenchResult, Compared, Statistics } from './result.ts';
import { rounded } from './statistics.ts';

/** A figure of two results. */
export interface FigureChange {
  readonly now: number;
  readonly then: number;
  /** Relative to the earlier figure: -0.1 is a tenth less. */
  readonly change: number;
  /** Whether the ranges of the repeats overlap, so that the change may be noise. */
  readonly overlaps: boolean;
}

/** What a program and an earlier measurement of it differ in. Null where one of them has no such figure. */
export interface ProgramComparison {
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

/** The compared figures, ratios first: they depend least on the machine. */
export const figureNames = [
  'ratio_to_floor',
  'ratio_to_pipeline',
  'ratio_to_duckdb',
  'seconds',
  'cpu_seconds',
  'peak_memory_bytes',
  'bytes',
  's3_requests',
] as const;
export type FigureName = (typeof figureNames)[number];

type Figures = Partial<Pick<Compared, FigureName>>;

/** Compares a result with an earlier one, for the programs that both measured. */
export function compareResults(now: BenchResult, then: BenchResult): Comparison {
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

function programsOf({ floor, pipeline, duckdb, exports }: BenchResult): Map<string, Figures> {
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

function warningsOf(now: BenchResult, then: BenchResult): string[] {
  const described = (result: BenchResult): Record<string, unknown> => ({
    'number of events': result.events,
    'warm-up': result.warm,
    ...Object.fromEntries(
      Object.entries(result.machine).map(([name, value]) => [`machine's ${name}`, value]),
    ),
  });
  const before = described(then);
  return Object.entries(described(now))
    .filter(([name, value]) => value !== before[name])
    .map(([name, value]) => `The ${name} differs: ${String(value)} now, ${String(before[name])} then.`);
}
