import { commaList, joinSql, sql, type Sql } from '../../sql.ts';
import { withNull } from '../../types.ts';
import { toCondition, unify } from '../coerce.ts';
import { compareValues } from '../comparisons.ts';
import { defaultOf } from '../json_values.ts';
import { argument, type Emitter, argumentNode, argumentSql, argumentsSql } from './call_site.ts';

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

const nullIf: Emitter = (site) => ({
  sql: sql`nullif(${argumentSql(site, 0)}, ${argumentSql(site, 1)})`,
  type: withNull(site.returnType),
});

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

/** Nulls are ignored, in ClickHouse as in PostgreSQL. */
const extremeOf =
  (name: 'least' | 'greatest'): Emitter =>
  (site) => {
    const collated = site.values.map((value) =>
      site.returnType.kind === 'string' ? sql`(${value.sql}) collate "C"` : value.sql,
    );
    const call =
      name === 'least' ? sql`least(${commaList(collated)})` : sql`greatest(${commaList(collated)})`;
    return {
      sql: call,
      type: withNull(
        site.returnType,
        site.values.every(({ type }) => type.nullable),
      ),
    };
  };

export const conditionEmitters = {
  if: conditional,
  multiIf,
  coalesce,
  ifNull: coalesce,
  nullIf,
  assumeNotNull,
  toNullable,
  xor,
  transform,
  least: extremeOf('least'),
  greatest: extremeOf('greatest'),
} satisfies Readonly<Record<string, Emitter>>;
