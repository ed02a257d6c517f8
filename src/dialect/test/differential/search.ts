import type { Pool } from 'pg';
import { QueryGenerator } from './generator/queries.ts';
import { Random } from './generator/random.ts';
import { smallerData, smallerQueries } from './shrink.ts';
import { type Data, insertData, randomData } from './tables.ts';
import { type CompileForTrial, compileAsProduct, type Outcome, outcomeOf, type Trial } from './trial.ts';

/** A query and rows for which the product and the reference interpreter differ. */
interface Difference {
  readonly seed: number;
  readonly text: string;
  readonly rows: Readonly<Record<string, readonly unknown[]>>;
  readonly timezone: string;
  readonly difference: string;
}

interface SearchResult {
  readonly differences: readonly Difference[];
  /** The number of queries that were compared. */
  readonly compared: number;
  readonly skipped: number;
  /** The number of compared queries that returned rows. */
  readonly withRows: number;
}

interface SearchOptions {
  readonly seed: number;
  readonly cases: number;
  /** The number of cases to leave out before the first one. */
  readonly skip?: number;
  /** Ends the search after so many differences. */
  readonly maxDifferences?: number;
  readonly compile?: CompileForTrial;
  /** Whether to compare a query at all. */
  readonly concerns?: (text: string) => boolean;
  /** The maximum number of trials to shrink a difference. */
  readonly shrinkTrials?: number;
}

interface StoredData {
  readonly data: Data;
  readonly dataSet: number;
}

const timezones = [
  'UTC',
  'Europe/Berlin',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
];
const dataSets = 24;

/** Compares random queries over random rows. Case `n` of a search has the seed `seed + n`. */
export class DifferentialSearch {
  readonly #pool: Pool;
  readonly #stored = new Map<number, readonly StoredData[]>();
  #lastDataSet = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async run({ seed, cases, ...options }: SearchOptions): Promise<SearchResult> {
    const {
      maxDifferences = 1,
      compile = compileAsProduct,
      shrinkTrials = 400,
      concerns,
      skip = 0,
    } = options;
    const differences: Difference[] = [];
    const counts = { compared: 0, skipped: 0, withRows: 0 };
    const stored = await this.#storedFor(seed);
    for (let index = skip; index < skip + cases && differences.length < maxDifferences; index += 1) {
      const random = new Random(seed + index);
      const { data, dataSet } = random.one(stored);
      const text = new QueryGenerator(random).query();
      const trial = { text, data, dataSet, timezone: random.one(timezones) };
      if (concerns?.(text) === false) continue;
      const outcome = await outcomeOf(this.#pool, trial, compile);
      if (outcome.kind === 'skipped') counts.skipped += 1;
      else counts.compared += 1;
      if (outcome.kind === 'same' && outcome.rows > 0) counts.withRows += 1;
      if (outcome.kind === 'different')
        differences.push(await this.#shrink(trial, outcome, { seed: seed + index, compile, shrinkTrials }));
    }
    return { differences, ...counts };
  }

  /** The rows that the searches with a seed read. */
  async #storedFor(seed: number): Promise<readonly StoredData[]> {
    const known = this.#stored.get(seed);
    if (known !== undefined) return known;
    const random = new Random(seed);
    const stored: StoredData[] = [];
    for (let index = 0; index < dataSets; index += 1) stored.push(await this.#store(randomData(random)));
    this.#stored.set(seed, stored);
    return stored;
  }

  async #store(data: Data): Promise<StoredData> {
    this.#lastDataSet += 1;
    await insertData(this.#pool, data, this.#lastDataSet);
    return { data, dataSet: this.#lastDataSet };
  }

  async #shrink(
    first: Trial,
    outcome: Extract<Outcome, { kind: 'different' }>,
    { seed, compile, shrinkTrials }: { seed: number; compile: CompileForTrial; shrinkTrials: number },
  ): Promise<Difference> {
    let [trial, { difference }] = [first, outcome];
    let trials = 0;
    const isSmaller = async (candidate: Trial): Promise<boolean> => {
      trials += 1;
      const found = await outcomeOf(this.#pool, candidate, compile);
      if (found.kind !== 'different' || kindOf(found.difference) !== kindOf(difference)) return false;
      [trial, { difference }] = [candidate, found];
      return true;
    };
    let shrinks = true;
    while (shrinks && trials < shrinkTrials) {
      shrinks = false;
      for (const text of smallerQueries(trial.text)) {
        if (trials >= shrinkTrials) break;
        shrinks = await isSmaller({ ...trial, text });
        if (shrinks) break;
      }
      if (shrinks) continue;
      for (const data of smallerData(trial.data)) {
        if (trials >= shrinkTrials * 2) break;
        shrinks = await isSmaller({ ...trial, ...(await this.#store(data)) });
        if (shrinks) break;
      }
    }
    return { seed, text: trial.text, rows: usedRows(trial), timezone: trial.timezone, difference };
  }
}

/** Shrinking must not turn a wrong row into an error, or the reverse. */
const kindOf = (difference: string): string => /^(failed: \w+|column|found|\d)/.exec(difference)?.[0] ?? '';

const usedRows = ({ data, text }: Trial): Difference['rows'] =>
  Object.fromEntries(
    [...data]
      .filter(([table, rows]) => rows.length > 0 && text.includes(table))
      .map(([table, rows]) => [
        table,
        rows.map((row) =>
          Object.fromEntries(
            [...row].map(([name, value]) => [
              name,
              typeof value === 'bigint' || typeof value === 'number' ? String(value) : value,
            ]),
          ),
        ),
      ]),
  );
