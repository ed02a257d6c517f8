import type { Query } from '../ast.ts';
import type { Project } from '../resolve/statement.ts';
import type { TypedQuery, Value } from '../resolve/value.ts';
import { nameOfType } from '../types.ts';
import { type CompiledStatement, type CompileOptions, compileTypedQuery } from './compile_query.ts';

/** A node of the typed representation: a query, a clause, or an operation with the type of its result. */
export interface ExplainedNode {
  readonly operation: string;
  /** The ClickHouse name of the type; null for queries and clauses. */
  readonly type: string | null;
  readonly operands: readonly ExplainedNode[];
}

/** A query as the compiler understands it, with its statement. */
export interface ExplainedQuery {
  readonly tree: ExplainedNode;
  readonly statement: CompiledStatement;
}

/**
 * Compiles a query and describes its typed representation. A query that is read several times is described once.
 * @throws DialectError
 */
export function explainQuery(
  query: string | Query,
  project: Project,
  options: CompileOptions = {},
): ExplainedQuery {
  const { typed, statement } = compileTypedQuery(query, project, options);
  const described = new Set<TypedQuery>();
  const ofQuery = (one: TypedQuery): ExplainedNode => {
    if (described.has(one)) return { operation: `${one.operation}, see above`, type: null, operands: [] };
    described.add(one);
    const from = one.sources.map(ofQuery);
    const clauses = one.clauses.map(({ name, values }) => ({
      operation: name,
      type: null,
      operands: values.map(ofValue),
    }));
    return { operation: one.operation, type: null, operands: [...from, ...clauses] };
  };
  const ofValue = ({ operation, type, operands, query: inner }: Value): ExplainedNode => ({
    operation,
    type: nameOfType(type, project.timezone),
    operands: [...operands.map(ofValue), ...(inner === undefined ? [] : [ofQuery(inner)])],
  });
  return { tree: ofQuery(typed), statement };
}

/** The tree as lines: one node each, indented below the node that reads it. */
export const explainedLines = (
  { operation, type, operands }: ExplainedNode,
  depth = 0,
): readonly string[] => [
  `${'  '.repeat(depth)}${operation}${type === null ? '' : `: ${type}`}`,
  ...operands.flatMap((operand) => explainedLines(operand, depth + 1)),
];
