import type { Expression, OrderItem } from '../dialect/ast.ts';
import { DialectError } from '../dialect/dialect_error.ts';
import { parseExpression, parseOrderItem, parseSelectItem } from '../dialect/parser/parse.ts';
import { QueryError } from './query_errors.ts';

/** Refusals of the dialect name the member of the request that they are about. @throws QueryError `dialect_error` */
export function withFieldPath<Result>(attr: string | null, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    const { line, column, offset, length } = error;
    throw new QueryError('dialect_error', error.message, {
      attr,
      position: { line, column, offset, length },
    });
  }
}

/** A condition or a value that a member of a request holds as text. @throws QueryError `dialect_error` */
export const parseExpressionAt = (text: string, attr: string): Expression =>
  withFieldPath(attr, () => parseExpression(text));

/** An expression that may have a name. @throws QueryError `dialect_error` */
export const parseSelectItemAt = (text: string, attr: string): Expression =>
  withFieldPath(attr, () => parseSelectItem(text));

/** What rows are sorted by. @throws QueryError `dialect_error` */
export const parseOrderItemAt = (text: string, attr: string): OrderItem =>
  withFieldPath(attr, () => parseOrderItem(text));
