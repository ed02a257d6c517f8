/** Expressions of the dialect in fields of a request. */
import { type Call, type Expression, type OrderItem, walk } from '@exportd/dialect/ast';
import { DialectError } from '@exportd/dialect/query_text';
import { findFunction } from '@exportd/dialect/functions/registry';
import { parseExpression, parseOrderItem, parseSelectItem } from '@exportd/dialect/parser/queries';
import { positionOf, QueryError } from './query_errors.ts';

/**
 * Turns a DialectError of `read` into a QueryError with the path of the field in the request.
 * @throws QueryError `dialect_error`
 */
export function withFieldPath<Result>(attr: string | null, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    throw new QueryError('dialect_error', error.message, { attr, position: positionOf(error) });
  }
}

/** Parses an expression in a field of the request. @throws QueryError `dialect_error` */
export const parseExpressionAt = (text: string, attr: string): Expression =>
  withFieldPath(attr, () => parseExpression(text));

/** Parses an expression that may have an alias. @throws QueryError `dialect_error` */
export const parseSelectItemAt = (text: string, attr: string): Expression =>
  withFieldPath(attr, () => parseSelectItem(text));

/** Parses an item of ORDER BY. @throws QueryError `dialect_error` */
export const parseOrderItemAt = (text: string, attr: string): OrderItem =>
  withFieldPath(attr, () => parseOrderItem(withoutLabel(text)));

/**
 * An item of `orderBy` without the label of its column: `person_display_name -- Person DESC` means
 * `person_display_name DESC`. To the dialect all of the label would be a comment.
 */
export function withoutLabel(text: string): string {
  const { column = text, direction = '' } =
    /^(?<column>[^'"\n]*?)\s--\s[^\n]*?(?<direction>\s(?:asc|desc))?\s*$/i.exec(text)?.groups ?? {};
  return `${column}${direction}`;
}

const isAggregate = ({ name, over }: Call): boolean =>
  over === null && findFunction(name.text)?.definition.kind === 'aggregate';

/** Whether an expression contains an aggregate of its own SELECT. Aggregates inside subqueries belong to those. */
export function hasAggregate(expression: Expression): boolean {
  let found = false;
  walk(expression, {
    enter: (node) => {
      if (node.kind === 'call' && isAggregate(node)) found = true;
      return node.kind !== 'subquery';
    },
  });
  return found;
}

/**
 * Whether an expression is the same for all rows. A constant such as `1` in GROUP BY would mean a column's position.
 */
export const isConstant = ({ kind }: Expression): boolean =>
  kind === 'number' || kind === 'string' || kind === 'boolean' || kind === 'null' || kind === 'time';

/** An expression without its alias. */
export const withoutName = (expression: Expression): Expression =>
  expression.kind === 'alias' ? expression.expression : expression;
