import type { Settings } from '../config/settings.ts';
import { workflowIds, type DeploymentSettings } from '../contract/workflow_ids.ts';
import type { RunLink } from './read_models/runs.ts';

/** Links runs to the Temporal UI: to the workflow id of the run's interval, which lists all runs of that interval. */
export function createRunLink(
  settings: DeploymentSettings & Pick<Settings, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>,
): RunLink {
  const { TEMPORAL_UI_URL, TEMPORAL_NAMESPACE } = settings;
  if (TEMPORAL_UI_URL === undefined) return () => null;
  const base = `${TEMPORAL_UI_URL.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(TEMPORAL_NAMESPACE)}/workflows`;
  return (run) => `${base}/${encodeURIComponent(workflowIds(settings).run(run))}`;
}
