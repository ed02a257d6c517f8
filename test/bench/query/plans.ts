import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRows } from '../../../src/queries/dialect_reader.ts';
import type { QueryContext } from '../../../src/queries/query_kind.ts';
import type { QueryStatement, Warehouse } from '../../../src/queries/warehouse.ts';
import type { QueryKinds } from '../../../src/queries/parse_query.ts';
import type { Insight, InsightRange } from './insights.ts';

/** A statement of exportd with its query plan. */
interface StatementPlan {
  readonly statement: string;
  readonly plan: string;
}

const maxPlanLines = 10_000;

/** Runs the insight and explains each statement that returned rows. @throws QueryError */
export async function plansOf(
  insight: Insight,
  range: InsightRange,
  kinds: QueryKinds,
  context: QueryContext,
): Promise<readonly StatementPlan[]> {
  const read: QueryStatement[] = [];
  const { warehouse } = context;
  const recording: Warehouse = {
    schema: () => warehouse.schema(),
    readRows: (statement, receiver) => {
      read.push(statement);
      return warehouse.readRows(statement, receiver);
    },
  };
  await kinds.parse(insight.query(range)).run({ ...context, warehouse: recording });
  const plans: StatementPlan[] = [];
  for (const { text, values } of read) {
    const explain = { text: `explain (costs off) ${text}`, values };
    const { rows } = await readRows(context, explain, maxPlanLines);
    plans.push({ statement: text, plan: rows.flat().join('\n') });
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
