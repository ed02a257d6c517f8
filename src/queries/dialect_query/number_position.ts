import { findNodes, type Node } from '@exportd/dialect/ast';
import { parseQuery } from '@exportd/dialect/parser/queries';
import { DialectError, QueryText } from '@exportd/dialect/query_text';
import { positionOf, QueryError } from '../query_errors.ts';

/** PostgreSQL's code of a number that is out of range. */
const outOfRange = 'SQLSTATE 22003';
/** Larger numbers need 64 bits, and sums of them may need more. */
const largest = 2 ** 31 - 1;

type NumberLiteral = Extract<Node, { kind: 'number' }>;

/** PostgreSQL does not say which number is out of range: the error points to the largest one of the text, if it has one. */
export function withNumberPosition(error: QueryError, text: string): QueryError {
  if (!error.message.includes(outOfRange)) return error;
  const [found] = findNodes(parseQuery(text), (node): node is NumberLiteral => node.kind === 'number')
    .filter((literal) => Number(literal.text) > largest)
    .sort((one, other) => Number(other.text) - Number(one.text));
  if (found === undefined) return error;
  const located = new DialectError(new QueryText(text), error.message, found);
  return new QueryError(error.code, located.message, { attr: 'query__query', position: positionOf(located) });
}
