import { coerce, defaultOf, toCondition, unify } from '../compile/expressions/coerce.ts';
import { compareValues } from '../compile/expressions/comparisons.ts';
import { joinSql, sql, type Sql } from '../sql.ts';
import { withNull } from '../types.ts';
import {
  argument,
  argumentNode,
  argumentSql,
  argumentsSql,
  byCompiler,
  type Emitter,
  type FunctionDefinition,
  scalar,
  standardScalar,
} from './function_definition.ts';

const conditional: Emitter = (site) => {
  const [yes, no] = [argument(site, 1), argument(site, 2)];
  return {
    sql: sql`(case when ${argumentSql(site, 0)} then ${yes.sql} else ${no.sql} end)`,
    type: withNull(site.returnType, yes.type.nullable || no.type.nullable),
  };
};

const multiIf: Emitter = (site) => {
  if (site.values.length % 2 === 0)
    throw site.statement.error(
      `Function '${site.name}' expects pairs of a condition and a value, and a default value.`,
      site.node,
    );
  const indexes = site.values.map((_, index) => index);
  const valueIndexes = indexes.filter((index) => index % 2 === 1 || index === indexes.length - 1);
  const { type, fragments: results } = unify(
    valueIndexes.map((index) => argument(site, index)),
    valueIndexes.map((index) => argumentNode(site, index)),
    site.statement,
    `The values of '${site.name}'`,
  );
  const branches: Sql[] = [];
  for (let pair = 0; pair * 2 < indexes.length - 1; pair += 1) {
    const index = pair * 2;
    const when = toCondition(argument(site, index), argumentNode(site, index), site.statement);
    branches.push(sql` when ${when} then ${results[pair] ?? sql`null`}`);
  }
  return {
    sql: sql`(case${joinSql(branches, '')} else ${results.at(-1) ?? sql`null`} end)`,
    type,
  };
};

const coalesce: Emitter = (site) => ({
  sql: sql`coalesce(${argumentsSql(site)})`,
  type: withNull(
    site.returnType,
    site.values.every(({ type }) => type.nullable),
  ),
});

/** A date stays one, also where it is compared with a time. */
const nullIf: Emitter = (site) => {
  const compared = {
    ...argument(site, 0),
    sql: sql`nullif(${argumentSql(site, 0)}, ${argumentSql(site, 1)})`,
    type: withNull(site.returnType),
  };
  const given = site.given[0]?.type;
  if (given?.kind !== 'date' || compared.type.kind !== 'datetime') return compared;
  const type = withNull(given);
  return { sql: coerce(compared, type, site.statement), type };
};

const assumeNotNull: Emitter = (site) => {
  const { type, sql: value } = argument(site, 0);
  const plain = withNull(type, false);
  return type.nullable
    ? { sql: sql`coalesce(${value}, ${defaultOf(plain)})`, type: plain }
    : { sql: value, type };
};

const toNullable: Emitter = (site) => ({ sql: argumentSql(site, 0), type: withNull(argument(site, 0).type) });

const xor: Emitter = (site) =>
  site.values
    .slice(1)
    .reduce((odd, value) => sql`(${odd} <> (${value.sql}))`, sql`(${argument(site, 0).sql})`);

/** Maps a value by two arrays: returns the item of the second at the index where the first contains the value. */
const transform: Emitter = (site) => {
  const value = argument(site, 0);
  const [from, to] = [argument(site, 1), argument(site, 2)];
  const other = site.values[3];
  const [wanted, results] = [from.items, to.items];
  if (results === undefined || wanted?.length !== results.length)
    throw site.statement.error(
      `Function '${site.name}' expects two array literals of the same length.`,
      site.node,
    );
  const { type, fragments: given } = unify(
    [...results, other ?? value],
    [...results, other ?? value].map(() => site.node),
    site.statement,
    `The results of '${site.name}'`,
  );
  const branches = wanted.map((one, index) => {
    const same = compareValues('=', { left: value, right: one, node: site.node }, 'value', site.statement);
    return sql` when ${same.sql} then ${given[index] ?? sql`null`}`;
  });
  return { sql: sql`(case${joinSql(branches, '')} else ${given.at(-1) ?? sql`null`} end)`, type };
};

/** Conditional and null functions. */
export const conditionFunctions: readonly FunctionDefinition[] = [
  standardScalar('if(boolean, T, T): T', 'One of two values.', conditional),
  scalar(
    'multiIf(boolean, T, any...): T',
    'The value of the first true condition, or the last value.',
    multiIf,
  ),
  scalar('transform(T, array(T), array(U), U?): U', 'A value mapped by two arrays.', transform),
  scalar('isNull(any): boolean', 'Whether a value is null.', '($1 IS NULL)'),
  scalar('isNotNull(any): boolean', 'Whether a value is not null.', '($1 IS NOT NULL)'),
  standardScalar('coalesce(T, T...): T', 'The first non-null value.', coalesce),
  standardScalar('ifNull(T, T): T', 'The first value, or the second if it is null.', coalesce),
  standardScalar('nullIf(T, T): T', 'Null if both are equal, else the first.', nullIf),
  scalar('assumeNotNull(T): T', 'The value, or a default of its type if it is null.', assumeNotNull),
  scalar('toNullable(T): T', 'The value, as nullable.', toNullable),
];

/** Comparison and logic, mostly operators. */
export const comparisonFunctions: readonly FunctionDefinition[] = [
  scalar('equals(any, any): boolean', 'Whether two values are equal.', byCompiler),
  scalar('notEquals(any, any): boolean', 'Whether two values differ.', byCompiler),
  scalar('less(any, any): boolean', 'Whether the first is smaller.', byCompiler),
  scalar('greater(any, any): boolean', 'Whether the first is larger.', byCompiler),
  scalar('lessOrEquals(any, any): boolean', 'Whether the first is smaller or equal.', byCompiler),
  scalar('greaterOrEquals(any, any): boolean', 'Whether the first is larger or equal.', byCompiler),
  scalar('in(any, any): boolean', 'Whether a value is among others.', byCompiler),
  scalar('notIn(any, any): boolean', 'Whether a value is not among others.', byCompiler),
  scalar('like(string, string): boolean', 'Whether a string matches a pattern with % and _.', byCompiler),
  scalar('ilike(string, string): boolean', 'The same, case-insensitive.', byCompiler),
  scalar('notLike(string, string): boolean', 'Whether a string does not match a pattern.', byCompiler),
  scalar('notILike(string, string): boolean', 'The same, case-insensitive.', byCompiler),
  standardScalar('and(boolean, boolean, boolean...): boolean', 'Whether all are true.', byCompiler),
  standardScalar('or(boolean, boolean, boolean...): boolean', 'Whether any is true.', byCompiler),
  standardScalar('xor(boolean, boolean, boolean...): boolean', 'Whether an odd number of them is true.', xor),
  standardScalar('not(boolean): boolean', 'Whether it is false.', '(NOT $1)'),
];
