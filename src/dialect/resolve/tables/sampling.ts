import type { NumberLiteral, Ratio, Sample, Table } from '../../ast.ts';
import type { DialectError } from '../../dialect_error.ts';
import { bind, identifier, joinSql, sql, type Sql } from '../../sql.ts';
import type { Statement } from '../statement.ts';
import { sessionId } from './sessions.ts';

/**
 * What the rows of a table are sampled by, as its own relation has it: of one distinct id, person or session, a sample
 * has all rows or none, and tables that are sampled by distinct ids have the same ones.
 */
const sampleKeys: ReadonlyMap<string, Sql> = new Map([
  ['events', identifier('distinct_id')],
  ['persons', identifier('id')],
  ['person_distinct_ids', identifier('distinct_id')],
  ['sessions', sessionId],
  ['session_replay_events', identifier('distinct_id')],
]);

/** hashtextextended() gives whole numbers from the least one on, so many different ones. */
const minHash = -(2n ** 63n);
const hashCount = 2n ** 64n;

/** The condition by which a table's own relation is cut to its SAMPLE; null for all rows. @throws DialectError */
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

/** The refusal of a SAMPLE of something that has no ids to be sampled by. */
export const unsupportedSampleError = (statement: Statement, sample: Sample): DialectError =>
  statement.error(
    'This table cannot be sampled.',
    sample,
    `SAMPLE is supported for ${[...sampleKeys.keys()].join(', ')}.`,
  );

/** The first hash of a sample and the one behind its last, which may be none any more. */
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

/** Exact, so that samples at different offsets neither overlap nor leave hashes out. */
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

/** The first hash behind a share of all hashes. */
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
