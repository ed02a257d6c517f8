import { backfillExamples } from './backfills.ts';
import { batchExportExamples } from './batch_exports.ts';
import { dashboardExamples } from './dashboards.ts';
import type { ExampleTable } from './example.ts';
import { intervalExamples } from './intervals.ts';
import { queryExamples } from './queries.ts';
import { runExamples } from './runs.ts';
import { webhookExamples } from './webhooks.ts';

/** The examples of every operation. */
export const examples: ExampleTable = {
  ...batchExportExamples,
  ...runExamples,
  ...backfillExamples,
  ...intervalExamples,
  ...webhookExamples,
  ...dashboardExamples,
  ...queryExamples,
};
