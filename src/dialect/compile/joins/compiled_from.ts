import type { Expression, Join, Name } from '../../ast.ts';
import { type Column, mappedRelation, type Relation } from '../../resolve/relation.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import {
  columnIdentityOf,
  derive,
  everyOperand,
  identityOf,
  type TypedQuery,
  type Value,
} from '../../resolve/value.ts';
import { type Sql, sql } from '../../sql.ts';
import { withNull } from '../../types.ts';
import type { Compiler } from '../compiler.ts';
import { readConstant, toCondition } from '../expressions/coerce.ts';
import { type ComparisonOperands, toComparable } from '../expressions/comparisons.ts';
import { columnValue } from '../expressions/field_access.ts';

/** A compiled FROM clause. Read its SQL last, because relations collect the columns that the query uses. */
export interface CompiledFrom {
  readonly relations: readonly Relation[];
  /** USING columns. */
  readonly usingColumns: ReadonlyMap<string, Column>;
  /** What it reads, in the order written. */
  readonly sources: readonly TypedQuery[];
  /** The number of joined tables, including those of inlined subqueries. */
  readonly tableCount: number;
  /** Whether its SQL is a join, which needs parentheses after JOIN. */
  readonly isJoin: boolean;
  readonly sql: () => Sql;
}

/** The names of one side of a join with all columns mapped. */
export function mapColumns(
  { relations, usingColumns }: CompiledFrom,
  map: (column: Column) => Column,
): Pick<CompiledFrom, 'relations' | 'usingColumns'> {
  return {
    relations: relations.map((relation) => mappedRelation(relation, map)),
    usingColumns: new Map([...usingColumns].map(([name, column]) => [name, map(column)])),
  };
}

/** One side of a join, as written after JOIN. */
export const parenthesized = (from: CompiledFrom): Sql => (from.isJoin ? sql`(${from.sql()})` : from.sql());

/** A USING column on both sides of a join. @throws DialectError if a side lacks it */
export function usingOperands(
  left: CompiledFrom,
  right: CompiledFrom,
  name: Name,
  statement: Statement,
): ComparisonOperands {
  const [one, other] = [columnOf(left, name), columnOf(right, name)];
  if (one === undefined || other === undefined)
    throw statement.error(`The USING column \`${name.text}\` is not in both tables.`, name);
  return { left: columnValue(one, name), right: columnValue(other, name), node: name };
}

function columnOf({ relations, usingColumns }: CompiledFrom, { text }: Name): Column | undefined {
  const known = usingColumns.get(text);
  if (known !== undefined) return known;
  for (const relation of relations) {
    const relationField = relation.field(text);
    if (relationField?.kind === 'column') return relationField;
  }
  return undefined;
}

/** A value as a column. */
export function asColumn(value: Value): Column {
  const { sql: fragment, type, propertiesOf } = value;
  return {
    kind: 'column',
    identity: columnIdentityOf(value) ?? identityOf(value),
    sql: fragment,
    type,
    ...(propertiesOf === undefined ? {} : { propertiesOf }),
  };
}

/** The unqualified USING column: of the side that always has a row, or for FULL JOIN of either side. */
export function usingColumn(type: Join['type'], sides: ComparisonOperands, statement: Statement): Column {
  if (type !== 'full') return asColumn(type === 'right' ? sides.right : sides.left);
  const both = toComparable(sides, statement);
  const { left, right } = sides;
  return asColumn(
    derive('coalesce', [left, right], withNull(both.type), sql`coalesce(${both.left}, ${both.right})`),
  );
}

/** The operands of nested ANDs. */
export const conjunctsOf = (node: Expression): readonly Expression[] =>
  node.kind === 'logical' && node.operator === 'and' ? node.operands.flatMap(conjunctsOf) : [node];

/**
 * Pushes the WHERE conditions of a query into its relations: conjuncts that read only the columns a relation
 * accepts. Only rows that cannot appear are dropped, so results do not change.
 */
export function pushDownPredicates(compiler: Compiler, filters: readonly Expression[], scope: Scope): void {
  const targets = scope.relations.flatMap((relation) => relation.pushdownTargets?.() ?? []);
  if (targets.length === 0) return;
  const conditions = filters.flatMap(conjunctsOf).map((node) => {
    const value = compiler.value(node, scope, 'filter');
    return { value, sql: toCondition(value, node, scope.statement) };
  });
  for (const target of targets) {
    const columns = new Set([target.column, ...target.otherColumns]);
    const applicable = conditions.filter(({ value }) => readsOnly(value, columns));
    const reads = applicable.some(
      ({ value }) => !everyOperand(value, (operand) => operand.sql !== target.column),
    );
    if (reads) target.pushDown(applicable.map((one) => one.sql));
  }
}

/** Whether a value reads these columns alone. Subqueries read other columns. */
const readsOnly = (value: Value, columns: ReadonlySet<Sql>): boolean =>
  everyOperand(
    value,
    (operand) =>
      operand.query === undefined && (columnIdentityOf(operand) === undefined || columns.has(operand.sql)),
  );

/**
 * Tells relations which constants their columns must equal according to WHERE (`person_id = '…'`, `person_id IN ('…', '…')`),
 * so that they find these rows by an index. The conditions stay, so results do not change.
 */
export function lookUpConstants(compiler: Compiler, filters: readonly Expression[], scope: Scope): void {
  const targets = scope.relations.flatMap((relation) => relation.lookupTargets?.() ?? []);
  if (targets.length === 0) return;
  for (const { compared, candidates } of filters.flatMap(conjunctsOf).flatMap(equalitiesOf)) {
    if (!candidates.every((candidate) => candidate.kind === 'string')) continue;
    const value = compiler.value(compared, scope);
    const constants = candidates.map((one) => constantSql(compiler.value(one, scope), value, scope));
    const known = constants.filter((constant) => constant !== null);
    if (known.length < constants.length) continue;
    for (const target of targets) if (target.column === value.sql) target.restrictTo(known);
  }
}

/**
 * Finds joined rows by the equalities of WHERE that read only them (`person.properties.email = '…'`), and restricts the rows
 * that they are joined to. The conditions stay, so results do not change.
 */
export function searchJoinedRows(compiler: Compiler, filters: readonly Expression[], scope: Scope): void {
  for (const target of scope.relations.flatMap((relation) => relation.searchTargets?.() ?? [])) {
    const conditions = filters.flatMap(conjunctsOf).flatMap((node) => {
      if (equalitiesOf(node).length === 0) return [];
      const value = compiler.value(node, scope, 'filter');
      const reads = !everyOperand(value, (operand) => !target.columns.has(operand.sql));
      return reads && readsOnly(value, target.columns) ? [toCondition(value, node, scope.statement)] : [];
    });
    const ids = conditions.length === 0 ? null : scope.statement.search(target.search(conditions));
    if (ids !== null) target.restrictTo(ids);
  }
}

interface Equality {
  readonly compared: Expression;
  /** What it may equal. */
  readonly candidates: readonly Expression[];
}

/** The ways to read a condition as an equality. */
function equalitiesOf(condition: Expression): readonly Equality[] {
  if (condition.kind !== 'comparison') return [];
  const { operator, left, right } = condition;
  if (operator === '=')
    return [
      { compared: left, candidates: [right] },
      { compared: right, candidates: [left] },
    ];
  if (operator !== 'in') return [];
  if (right.kind === 'string') return [{ compared: left, candidates: [right] }];
  return right.kind === 'tuple' || right.kind === 'array'
    ? [{ compared: left, candidates: right.items }]
    : [];
}

/** A constant as the type of the other side; null if it is another type. */
function constantSql(constant: Value, { type }: Value, { statement }: Scope): Sql | null {
  if (constant.type.kind === type.kind) return constant.sql;
  return readConstant(constant, type, statement)?.sql ?? null;
}
