import type { NumberLiteral, Ratio, Sample, Table } from '../../ast.ts';
import type { DialectError } from '../../dialect_error.ts';
import { bind, identifier, joinSql, sql, type Sql } from '../../sql.ts';
import type { Statement } from '../statement.ts';
import { sessionId } from './sessions.ts';

/**
 * The sampling key of each table. A sample has all rows of a key or none. Tables sampled by distinct id contain the
 * same ids.
 */
const sampleKeys: ReadonlyMap<string, Sql> = new Map([
  ['events', identifier('distinct_id')],
  ['persons', identifier('id')],
  ['person_distinct_ids', identifier('distinct_id')],
  ['sessions', sessionId],
  ['session_replay_events', identifier('distinct_id')],
]);

/** hashtextextended() returns 64-bit integers from this one up. */
const minHash = -(2n ** 63n);
const hashCount = 2n ** 64n;

/** The condition of a table's SAMPLE; null for all rows. @throws DialectError */
export function samplingCondition(statement: Statement, { path, sample }: Table): Sql | null {
  if (sample === null) return null;
  const id = sampleKeys.get(path.map(({ text }) => text).join('.'));
  if (id === undefined) throw unsupportedSampleError(statement, sample);
  const { from, to } = hashRange(statement, sample);
  const hash = sql`hashtextextended(${id}::text, 0)`;
  const bounds = [
    ...(from === minHash ? [] : [sql`${hash} >= ${bind(String(from), 'int8')}`]),
    ...(to >= minHash + hashCount ? [] : [sql`${hash} < ${bind(String(to), 'int8')}`]),
  ];
  return bounds.length === 0 ? null : joinSql(bounds, ' and ');
}

/** The error for SAMPLE of a table without a sampling key. */
export const unsupportedSampleError = (statement: Statement, sample: Sample): DialectError =>
  statement.error(
    'This table cannot be sampled.',
    sample,
    `SAMPLE is supported for ${[...sampleKeys.keys()].join(', ')}.`,
  );

/** The hash range of a sample: `to` is exclusive and may lie beyond the last hash. */
function hashRange(
  statement: Statement,
  { ratio, offset }: Sample,
): { readonly from: bigint; readonly to: bigint } {
  const requested = fractionOf(statement, ratio);
  const share = requested.numerator === 0n ? whole : requested;
  const offsetShare = offset === null ? none : fractionOf(statement, offset);
  if (share.numerator > share.denominator)
    throw statement.error(
      'A sampling ratio must be at most 1.',
      ratio,
      'For example 0.1 or 1/10; row counts are not supported.',
    );
  if (offset !== null && offsetShare.numerator >= offsetShare.denominator)
    throw statement.error('A sampling offset must be below 1.', offset, 'For example 0.5 or 1/2.');
  if (offset !== null && offsetShare.numerator > 0n && share.numerator === share.denominator)
    throw statement.error(
      'OFFSET requires a sampling ratio below 1.',
      offset,
      'For example SAMPLE 1/10 OFFSET 1/2.',
    );
  return { from: hashAt(offsetShare), to: hashAt(sumOf(offsetShare, share)) };
}

/** Exact, so that samples at adjacent offsets neither overlap nor leave a gap. */
interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const none: Fraction = { numerator: 0n, denominator: 1n };
const whole: Fraction = { numerator: 1n, denominator: 1n };

const sumOf = (one: Fraction, other: Fraction): Fraction => ({
  numerator: one.numerator * other.denominator + other.numerator * one.denominator,
  denominator: one.denominator * other.denominator,
});

/** The first hash after a share of all hashes. */
const hashAt = ({ numerator, denominator }: Fraction): bigint =>
  minHash + (hashCount * numerator) / denominator;

function fractionOf(statement: Statement, { numerator, denominator }: Ratio): Fraction {
  const dividend = decimalOf(statement, numerator);
  if (denominator === null) return dividend;
  const divisor = decimalOf(statement, denominator);
  if (divisor.numerator === 0n)
    throw statement.error('The denominator of a sampling ratio cannot be 0.', denominator);
  return {
    numerator: dividend.numerator * divisor.denominator,
    denominator: dividend.denominator * divisor.numerator,
  };
}

const decimal = /^(?<whole>\d*)\.?(?<fraction>\d*)(?:e(?<exponent>[+-]?\d{1,3}))?$/;

function decimalOf(statement: Statement, number: NumberLiteral): Fraction {
  const groups = decimal.exec(number.text)?.groups;
  if (groups === undefined)
    throw statement.error('A sampling ratio must be a decimal number.', number, 'For example 0.1 or 1/10.');
  const { whole = '', fraction = '', exponent = '0' } = groups;
  const digits = BigInt(whole + fraction);
  const scale = fraction.length - Number(exponent);
  return scale > 0
    ? { numerator: digits, denominator: 10n ** BigInt(scale) }
    : { numerator: digits * 10n ** BigInt(-scale), denominator: 1n };
}
