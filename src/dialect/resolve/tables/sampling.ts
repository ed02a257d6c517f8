import type { NumberLiteral, Ratio, Sample, Table } from '../../ast.ts';
import type { DialectError } from '../../dialect_error.ts';
import { bind, identifier, joinSql, sql, type Sql } from '../../sql.ts';
import type { Statement } from '../statement.ts';
import { sessionId } from './sessions.ts';

/**
 * What the rows of a table are sampled by, as its own relation has it: of one distinct id, person or session, a sample
 * has all rows or none, and tables that are sampled by distinct ids have the same ones.
 */
const sampledBy: ReadonlyMap<string, Sql> = new Map([
  ['events', identifier('distinct_id')],
  ['persons', identifier('id')],
  ['person_distinct_ids', identifier('distinct_id')],
  ['sessions', sessionId],
  ['session_replay_events', identifier('distinct_id')],
]);

/** hashtextextended() gives whole numbers from the least one on, so many different ones. */
const leastHash = -(2n ** 63n);
const hashes = 2n ** 64n;

/** The condition by which a table's own relation is cut to its SAMPLE; null for all rows. @throws DialectError */
export function samplingCondition(statement: Statement, { path, sample }: Table): Sql | null {
  if (sample === null) return null;
  const id = sampledBy.get(path.map(({ text }) => text).join('.'));
  if (id === undefined) throw notSampled(statement, sample);
  const { from, to } = hashesOf(statement, sample);
  const hash = sql`hashtextextended(${id}::text, 0)`;
  const bounds = [
    ...(from === leastHash ? [] : [sql`${hash} >= ${bind(String(from), 'int8')}`]),
    ...(to >= leastHash + hashes ? [] : [sql`${hash} < ${bind(String(to), 'int8')}`]),
  ];
  return bounds.length === 0 ? null : joinSql(bounds, ' and ');
}

/** The refusal of a SAMPLE of something that has no ids to be sampled by. */
export const notSampled = (statement: Statement, sample: Sample): DialectError =>
  statement.error(
    'This table cannot be sampled.',
    sample,
    `SAMPLE is of ${[...sampledBy.keys()].join(', ')}.`,
  );

/** The first hash of a sample and the one behind its last, which may be none any more. */
function hashesOf(
  statement: Statement,
  { ratio, offset }: Sample,
): { readonly from: bigint; readonly to: bigint } {
  const asked = fractionOf(statement, ratio);
  const share = asked.over === 0n ? whole : asked;
  const skipped = offset === null ? none : fractionOf(statement, offset);
  if (share.over > share.under)
    throw statement.error(
      'A sample is a share up to 1.',
      ratio,
      'Such as 0.1 or 1/10; it is no number of rows.',
    );
  if (offset !== null && skipped.over >= skipped.under)
    throw statement.error('A sample begins at a share below 1.', offset, 'Such as 0.5 or 1/2.');
  if (offset !== null && skipped.over > 0n && share.over === share.under)
    throw statement.error('OFFSET needs a sample that is a part.', offset, 'Such as SAMPLE 1/10 OFFSET 1/2.');
  return { from: hashAt(skipped), to: hashAt(sumOf(skipped, share)) };
}

/** Exact, so that samples at different offsets neither overlap nor leave hashes out. */
interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

const none: Fraction = { over: 0n, under: 1n };
const whole: Fraction = { over: 1n, under: 1n };

const sumOf = (one: Fraction, other: Fraction): Fraction => ({
  over: one.over * other.under + other.over * one.under,
  under: one.under * other.under,
});

/** The first hash behind a share of all hashes. */
const hashAt = ({ over, under }: Fraction): bigint => leastHash + (hashes * over) / under;

function fractionOf(statement: Statement, { numerator, denominator }: Ratio): Fraction {
  const over = decimalOf(statement, numerator);
  if (denominator === null) return over;
  const under = decimalOf(statement, denominator);
  if (under.over === 0n) throw statement.error('A share cannot be divided by 0.', denominator);
  return { over: over.over * under.under, under: over.under * under.over };
}

const decimal = /^(?<whole>\d*)\.?(?<part>\d*)(?:e(?<exponent>[+-]?\d{1,3}))?$/;

function decimalOf(statement: Statement, number: NumberLiteral): Fraction {
  const groups = decimal.exec(number.text)?.groups;
  if (groups === undefined)
    throw statement.error('A share is written in decimal digits.', number, 'Such as 0.1 or 1/10.');
  const { whole = '', part = '', exponent = '0' } = groups;
  const digits = BigInt(whole + part);
  const places = part.length - Number(exponent);
  return places > 0
    ? { over: digits, under: 10n ** BigInt(places) }
    : { over: digits * 10n ** BigInt(-places), under: 1n };
}
