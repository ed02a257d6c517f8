import { describe, expect, it } from '@jest/globals';
import type { Model } from '../../src/domain/batch_export.ts';
import { totalsOf } from '../../src/domain/exported_files.ts';
import {
  type EarlierFile,
  type EarlierGenerations,
  nothingEarlier,
} from '../../src/domain/earlier_generations.ts';
import {
  type MissingRows,
  type ReplacementOutcome,
  RowsMissingInSource,
} from '../../src/domain/replacement_check.ts';
import {
  adoptedRun,
  decideEarlierGenerations,
  type ReplacedRun,
} from '../../src/domain/replaced_generation.ts';
import type { ExistingRun, RunSpec } from '../../src/domain/run_state.ts';
import { fingerprintOf } from './fingerprints.ts';
import { runSpecOf } from './run_spec.ts';

describe('what a run leaves of earlier generations', () => {
  const objectOf = (key: string) => ({ key, rows: 1, bytes: 10, crc32: '00000000' });
  const earlierOf = (key: string, generation: number): EarlierFile => ({ ...objectOf(key), generation });

  const file = {
    ...objectOf('file'),
    fingerprint: fingerprintOf(1),
    first: null,
    last: null,
    rejected: 0,
    expires_at: null,
  };

  const specOf = (model: Model): RunSpec => runSpecOf({ model });

  /** Generation 3 with a file and a rejected one, which left a kept, an earlier and another bucket's generation. */
  const replacedOf = (model: Model, before: Partial<EarlierGenerations> = {}): ReplacedRun => {
    const replaced = adoptedRun(
      {
        run_id: 'replaced',
        generation: 3,
        model,
        config_version: 1,
        settled: true,
        files: totalsOf(file),
        rejected_file: { ...objectOf('rejected'), fingerprint: fingerprintOf(1) },
        source_rows: 2,
        fingerprint: fingerprintOf(2),
        encoder: 'test/1',
        created_at: '2026-11-01T11:00:00.000Z',
        kept: [],
        earlier: [],
        raised_to: 4,
      },
      specOf(model),
      'the run that found it',
    );
    const { phase } = replaced.run;
    if (phase.name !== 'publishing') throw new Error('An adopted run is publishing.');
    const left = { ...phase, earlier_generations: { ...nothingEarlier, ...before } };
    return { ...replaced, run: { ...replaced.run, phase: left } };
  };

  const runOf = (
    model: Model,
    outcome: ReplacementOutcome,
    run_id = 'replaced',
  ): Pick<ExistingRun, 'spec' | 'replacement'> => ({
    spec: specOf(model),
    replacement: {
      replaced: { run_id, generation: 3 },
      outcome,
      missing_rows: 0,
      bucket_rows: 2,
      source_rows: 2,
      source: null,
      generation: null,
    },
  });

  const here = { mayShrink: false, isSameBucket: true, files: { own: [file], replaced: [file] } };
  const before = { kept: [earlierOf('old kept', 1)], earlier: [earlierOf('old', 2)], elsewhere: [0] };

  it.each<[ReplacementOutcome, number | null]>([
    ['same_rows', 3],
    ['every_row_present', 3],
    ['not_comparable', null],
    ['rows_missing', null],
  ])('covers the generation that it replaces only if it has its rows (%s)', (outcome, covers) => {
    const earlier = decideEarlierGenerations(runOf('events', outcome), replacedOf('events'), here);
    expect(earlier).toEqual(
      covers === null
        ? { ...nothingEarlier, kept: [earlierOf('file', 3), earlierOf('rejected', 3)] }
        : { ...nothingEarlier, covers },
    );
  });

  it('covers nothing and keeps nothing beside its files if it adds late rows to them', () => {
    const earlier = decideEarlierGenerations(runOf('events', 'late_rows_added'), replacedOf('events'), here);
    expect(earlier).toEqual(nothingEarlier);
  });

  it('does not cover a generation that was not compared', () => {
    for (const run of [
      { ...runOf('events', 'same_rows'), replacement: null },
      runOf('events', 'same_rows', 'another'),
    ])
      expect(decideEarlierGenerations(run, replacedOf('events'), here)).toMatchObject({ covers: null });
  });

  it('does not cover persons whose files differ: their fingerprint tells nothing of their state', () => {
    const differing = { ...here, files: { own: [], replaced: [file] } };
    const run = runOf('persons', 'same_rows');
    expect(decideEarlierGenerations(run, replacedOf('persons'), differing)).toMatchObject({
      covers: null,
      earlier: [earlierOf('file', 3)],
    });
    const events = runOf('events', 'same_rows');
    expect(decideEarlierGenerations(events, replacedOf('events'), differing)).toMatchObject({ covers: 3 });
  });

  it('names files of persons as earlier, and their rejected rows as kept', () => {
    expect(decideEarlierGenerations(runOf('persons', 'not_comparable'), replacedOf('persons'), here)).toEqual(
      {
        ...nothingEarlier,
        kept: [earlierOf('rejected', 3)],
        earlier: [earlierOf('file', 3)],
      },
    );
  });

  it('passes on what the replaced generation had left, even if it covers that one', () => {
    const replaced = replacedOf('persons', before);
    expect(decideEarlierGenerations(runOf('persons', 'same_rows'), replaced, here)).toEqual({
      ...before,
      covers: 3,
    });
    expect(decideEarlierGenerations(runOf('persons', 'not_comparable'), replaced, here)).toEqual({
      covers: null,
      kept: [...before.kept, earlierOf('rejected', 3)],
      earlier: [...before.earlier, earlierOf('file', 3)],
      elsewhere: [0],
    });
  });

  it('is nothing if the run may shrink or has another model', () => {
    const nothing = { ...nothingEarlier, covers: 3 };
    const shrinking = { ...here, mayShrink: true };
    const run = runOf('persons', 'not_comparable');
    expect(decideEarlierGenerations(run, replacedOf('persons', before), shrinking)).toEqual(nothing);
    expect(decideEarlierGenerations(run, replacedOf('events', before), here)).toEqual(nothing);
  });

  it('stays in another bucket with the manifest that names it', () => {
    const elsewhere = { ...here, isSameBucket: false };
    const leftBy = (outcome: ReplacementOutcome, left: Partial<EarlierGenerations>) =>
      decideEarlierGenerations(runOf('persons', outcome), replacedOf('persons', left), elsewhere);
    expect(leftBy('not_comparable', {})).toEqual({ ...nothingEarlier, elsewhere: [3] });
    expect(leftBy('same_rows', {})).toEqual({ ...nothingEarlier, covers: 3 });
    expect(leftBy('same_rows', before)).toEqual({ ...nothingEarlier, covers: 3, elsewhere: [0, 1, 2, 3] });
  });
});

describe('the message of a held run', () => {
  const interval = { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:00:00.000Z' };

  const messageOf = (rows: MissingRows): string =>
    new RowsMissingInSource(
      {
        ...rows,
        replaced: { run_id: 'replaced', generation: 1 },
        outcome: 'rows_missing',
        source: null,
        generation: null,
      },
      interval,
    ).message;

  it('says that late rows are not exported either', () => {
    const message = messageOf({ missing_rows: 2, bucket_rows: 10, source_rows: 12 });
    expect(message).toContain('it has 12 rows, at least 4 of them not exported yet.');
    expect(message).toMatch(/Decide whether to keep .* if they are kept, the new rows are not exported\.$/);
  });

  it('says nothing about late rows when there are none', () => {
    const message = messageOf({ missing_rows: 2, bucket_rows: 10, source_rows: 8 });
    expect(message).toContain('it has 8 rows. Nothing was published');
    expect(message).toMatch(/Decide whether to keep .*\(exportd export difference\)\.$/);
  });
});
