import type { Meaning, ReferenceScope, Row } from './scope.ts';
import { commonType, isNumber, itemOf, type ReferenceType, typeOf, withNull } from './types.ts';
import { midnightOf, parseDatetime } from './times.ts';
import { unsupported, type Value } from './values.ts';

/** Decimals have up to nine digits after the point here. */
export const roundDecimal = (value: number): number =>
  Number.isFinite(value) ? Math.round(value * 1e9) / 1e9 : value;

/** Converts a value of one type to a type that both share with others. */
export function convertValue(value: Value, from: ReferenceType, to: ReferenceType, zone: string): Value {
  if (value === null) return null;
  if (from.kind === 'array' && to.kind === 'array' && Array.isArray(value))
    return value.map((item: Value) => convertValue(item, itemOf(from), itemOf(to), zone));
  if (from.kind === to.kind) return value;
  if (from.kind === 'boolean') return to.kind === 'integer' ? BigInt(Number(value)) : Number(value);
  if (isNumber(from.kind) && isNumber(to.kind)) return Number(value);
  if (from.kind === 'date' && to.kind === 'datetime') return midnightOf(value as string, zone);
  return unsupported(`A conversion of ${from.kind} to ${to.kind}.`);
}

export function convert(meaning: Meaning, to: ReferenceType, scope: ReferenceScope): Meaning {
  const { type } = meaning;
  const zone = scope.world.timezone;
  return {
    type: withNull(to, type.nullable),
    of: (row) => convertValue(meaning.of(row), type, to, zone),
  };
}

/** Converts all to the type that they share. */
export function unify(meanings: readonly Meaning[], scope: ReferenceScope): readonly Meaning[] {
  const [first, ...rest] = meanings;
  if (first === undefined) return [];
  let type: ReferenceType = first.type;
  for (const meaning of rest)
    type = commonType(type, meaning.type) ?? unsupported(`${type.kind} and ${meaning.type.kind}.`);
  return meanings.map((meaning) => convert(meaning, type, scope));
}

/** Converts both sides of a comparison; a string literal is read as the type of the other side. */
export function comparable(
  left: Meaning,
  right: Meaning,
  scope: ReferenceScope,
): readonly [Meaning, Meaning] {
  const [first, second] = unify([readLiteral(left, right, scope), readLiteral(right, left, scope)], scope);
  if (first === undefined || second === undefined) return unsupported('A comparison of nothing.');
  return [first, second];
}

function readLiteral(meaning: Meaning, other: Meaning, scope: ReferenceScope): Meaning {
  const { literal } = meaning;
  const { kind } = other.type;
  if (literal === undefined || kind === 'string' || kind === 'null') return meaning;
  const constant = (type: ReferenceType, value: Value): Meaning => ({ type, of: () => value });
  const time = parseDatetime(literal, scope.world.timezone);
  if (kind === 'date' && /^\d{4}-\d\d-\d\d$/.test(literal) && time !== undefined)
    return constant(typeOf('date'), literal);
  if ((kind === 'date' || kind === 'datetime') && time !== undefined)
    return constant(typeOf('datetime'), time);
  if (kind === 'integer' && /^-?\d+$/.test(literal)) return constant(typeOf('integer'), BigInt(literal));
  if (isNumber(kind) && /^-?\d+(\.\d+)?$/.test(literal)) return constant(typeOf('float'), Number(literal));
  if (kind === 'boolean' && /^(true|false)$/.test(literal))
    return constant(typeOf('boolean'), literal === 'true');
  if (kind === 'uuid') return constant(typeOf('uuid'), literal);
  return unsupported(`The literal '${literal}' as ${kind}.`);
}

/** Whether a condition is true; null is not. */
export function holds(meaning: Meaning): (row: Row) => boolean {
  const { type, of } = meaning;
  if (type.kind === 'boolean' || type.kind === 'null') return (row) => of(row) === true;
  if (!isNumber(type.kind)) return unsupported(`A condition of type ${type.kind}.`);
  return (row) => {
    const value = of(row);
    return value !== null && Number(value) !== 0;
  };
}
