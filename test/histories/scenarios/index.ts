import { backfillScenarios } from './backfill.ts';
import { backgroundQueryScenarios } from './background_query.ts';
import { jobScenarios } from './jobs.ts';
import { maintenanceScenarios } from './maintenance.ts';
import { notificationScenarios } from './notification.ts';
import { runScenarios } from './run.ts';
import type { Scenario } from './scenario.ts';
import { scheduleScenarios } from './schedule.ts';

/** Every recorded state of every workflow. A new workflow, or a new branch of one, gets a scenario. */
export const scenarios: readonly Scenario[] = [
  ...scheduleScenarios,
  ...backfillScenarios,
  ...runScenarios,
  ...maintenanceScenarios,
  ...notificationScenarios,
  ...backgroundQueryScenarios,
  ...jobScenarios,
];
