import { DateTime } from 'luxon';
import type { Coverage } from '../../src/domain/coverage.ts';

type State = Coverage['ranges'][number]['state'];

/** A range that a sentence names, in milliseconds since 1970. */
interface NamedTime {
  readonly start: number;
  readonly end: number;
  readonly state: State;
}

const labels = [
  ['Exported ', 'exported'],
  ['Expired in the bucket: ', 'not_owed'],
  ['Owed: ', 'owed'],
  ['Not exported: ', 'not_owed'],
] as const;

const time = String.raw`\d+ \w{3}(?: \d{4})? \d\d:\d\d`;

/** Reads a sentence about an export in UTC as a person does, who knows what year it is. */
function timesOf(sentence: string, year: number): { readonly times: NamedTime[]; readonly omits: boolean } {
  const toMs = (text: string): number => {
    const full = / \d{4} /.test(text) ? text : text.replace(/(?= \d\d:)/, ` ${year}`);
    return DateTime.fromFormat(full, 'd LLL yyyy HH:mm', { zone: 'UTC', locale: 'en' }).toMillis();
  };
  const times = labels.flatMap(([label, state]) => {
    const [, part = ''] = new RegExp(`(?:^|\\. )${label}([^.]*)\\.`).exec(sentence) ?? [];
    return [
      ...[...part.matchAll(new RegExp(`(${time}) – (${time})`, 'g'))].map(([, start = '', end = '']) => ({
        start: toMs(start),
        end: toMs(end),
        state,
      })),
      ...[...part.matchAll(new RegExp(`anything before (${time})`, 'g'))].map(([, end = '']) => ({
        start: Number.NEGATIVE_INFINITY,
        end: toMs(end),
        state,
      })),
      ...[...part.matchAll(new RegExp(`since (${time})`, 'g'))].map(([, start = '']) => ({
        start: toMs(start),
        end: Number.POSITIVE_INFINITY,
        state,
      })),
    ];
  });
  return { times, omits: sentence.includes('older ranges') };
}

/**
 * Lists the moments, in milliseconds since 1970, of which a sentence and the ranges beside it do not say the same. A sentence says of
 * backfills how far they are, and not of which time.
 */
export function disagreements(
  { sentence, ranges }: Pick<Coverage, 'sentence' | 'ranges'>,
  moments: readonly number[],
): string[] {
  const { times, omits } = timesOf(sentence, new Date(ranges.at(-1)?.end ?? 0).getUTCFullYear());
  return moments.flatMap((moment) => {
    const range = ranges.find(
      ({ start, end }) => (start === null || Date.parse(start) <= moment) && moment < Date.parse(end),
    );
    const said = times.filter(({ start, end }) => start <= moment && moment < end).map(({ state }) => state);
    const isLeftOut = said.length === 0 && (omits || range?.reason === 'backfill');
    if (!range || isLeftOut || (said.length === 1 && said[0] === range.state)) return [];
    return [`${new Date(moment).toISOString()}: ${range.state}, and in words ${said.join(' and ')}`];
  });
}
