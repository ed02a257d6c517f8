import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { QueryContext } from '../../queries/query_kind.ts';
import type { QueryKinds } from '../../queries/registry.ts';
import type { Insight, InsightRange } from './insight.ts';

/** A statement of exportd with its query plan. */
export interface StatementPlan {
  readonly statement: string;
  readonly plan: string;
}

/** Runs the insight and explains each statement that returned rows. @throws QueryError */
export async function plansOf(
  insight: Insight,
  range: InsightRange,
  kinds: QueryKinds,
  context: QueryContext,
): Promise<readonly StatementPlan[]> {
  const read: { readonly text: string; readonly values: unknown[] }[] = [];
  const { connection } = context;
  const query = new Proxy(connection.query, {
    apply: (target, _own, given: readonly unknown[]) => {
      const [submitted] = given;
      if (submitted instanceof pg.Query)
        read.push({
          text: Reflect.get(submitted, 'text') as string,
          values: Reflect.get(submitted, 'values') as unknown[],
        });
      return Reflect.apply(target, connection, given) as unknown;
    },
  });
  await kinds.parse(insight.query(range)).run({ ...context, connection: { query } });
  const plans: StatementPlan[] = [];
  for (const { text, values } of read) {
    const { rows } = await connection.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${text}`, values);
    plans.push({ statement: text, plan: rows.map((row) => row['QUERY PLAN']).join('\n') });
  }
  return plans;
}

/** File name of an insight such as `Trends: pageviews by browser, 30 days`. */
const fileOf = (name: string): string => `${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')}.txt`;

/** Writes the plans of an insight to a text file, with long lists of ids shortened. */
export function writePlans(
  folder: string,
  insight: Insight,
  about: string,
  plans: readonly StatementPlan[],
): void {
  mkdirSync(folder, { recursive: true });
  const shortened = (plan: string): string =>
    plan.replaceAll(/'\{([^,}]*,[^,}]*),[^}]{200,}\}'/g, "'{$1, …}'");
  const texts = plans.map(({ statement, plan }) => `${statement.slice(0, 4_000)}\n\n${shortened(plan)}\n`);
  writeFileSync(join(folder, fileOf(insight.name)), `${insight.name}\n${about}\n\n${texts.join('\n')}`);
}
