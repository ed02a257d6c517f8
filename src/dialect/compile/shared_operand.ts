import { readFrom, type Value } from '../resolve/value.ts';
import { generatedName, sql } from '../sql.ts';

/** Shorter operands are repeated, so that PostgreSQL can use indexes. */
const maxRepeatedLength = 500;

/**
 * A value that reads an operand several times. A long operand is computed once, in a subquery: repeating it at each level
 * would make nested SQL exponentially long.
 */
export function withSharedOperand(operand: Value, make: (operand: Value) => Value): Value {
  const isRepeated =
    operand.sql.length <= maxRepeatedLength ||
    operand.constant !== undefined ||
    operand.traits.window !== null;
  if (isRepeated) return make(operand);
  const alias = generatedName('operand');
  const value = make(readFrom(operand, { sql: sql`${alias}.v` }, operand.traits));
  return { ...value, sql: sql`(select ${value.sql} from (select ${operand.sql} as v offset 0) as ${alias})` };
}
