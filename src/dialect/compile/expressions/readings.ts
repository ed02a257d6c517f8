import type { Statement } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';
import { sql } from '../../sql.ts';
import { propertyOf, scalarType, type Type } from '../../types.ts';

/**
 * The other reading of a property without a declared type, for a place that rejects a value: of text, the inferred type,
 * which is requested; of that type, the text. Undefined for other values, and if the property has no other type.
 */
export function otherReading(value: Value, statement: Statement): Value | undefined {
  if (value.text !== undefined) return value.text;
  const type = otherType(value.type, statement);
  const { spaced: _, ...other } = value;
  return type && { ...other, sql: type.kind === 'array' ? sql`'[]'::jsonb` : sql`null::text`, type };
}

/** The type of a property whose text is rejected. It is requested; until it is known, it is that of null, which fits everywhere. */
export function otherType(type: Type, statement: Statement): Type | undefined {
  if (type.kind === 'array') {
    const item = otherType(type.item, statement);
    return item && { ...type, item };
  }
  const property = propertyOf(type);
  const { inference } = statement.project.schema;
  if (property === undefined || inference?.request(property) !== true) return undefined;
  return scalarType('null', true);
}

/** A value in a place that rejects text: of a property, in its inferred type. */
export const notText = (value: Value, statement: Statement): Value =>
  (value.type.kind === 'string' ? otherReading(value, statement) : undefined) ?? value;

/** What `read` makes of values; if that is null, of their other readings. */
export function firstReading<Result>(
  values: readonly Value[],
  statement: Statement,
  read: (values: readonly Value[]) => Result | null,
): Result | null {
  const found = read(values);
  if (found !== null) return found;
  const others = values.map((value) => otherReading(value, statement) ?? value);
  return others.every((other, index) => other === values[index]) ? null : read(others);
}
