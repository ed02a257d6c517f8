import type { Expression, OrderItem } from '../dialect/ast.ts';
import { DialectError } from '../dialect/dialect_error.ts';
import { parseExpression, parseOrderItem, parseSelectItem } from '../dialect/parser/parse.ts';
import { QueryInvalid } from './query_errors.ts';

/** Refusals of the dialect name the member of the request that they are about. @throws QueryInvalid `dialect_error` */
export function namingMember<Result>(attr: string | null, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    const { line, column, offset, length } = error;
    throw new QueryInvalid('dialect_error', error.message, {
      attr,
      position: { line, column, offset, length },
    });
  }
}

/** A condition or a value that a member of a request holds as text. @throws QueryInvalid `dialect_error` */
export const readExpression = (text: string, attr: string): Expression =>
  namingMember(attr, () => parseExpression(text));

/** An expression that may have a name. @throws QueryInvalid `dialect_error` */
export const readSelectItem = (text: string, attr: string): Expression =>
  namingMember(attr, () => parseSelectItem(text));

/** What rows are sorted by. @throws QueryInvalid `dialect_error` */
export const readOrderItem = (text: string, attr: string): OrderItem =>
  namingMember(attr, () => parseOrderItem(text));
