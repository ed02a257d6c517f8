import { searchAttributes } from '../../workflows/activity_options.ts';
import type { Settings } from '../config/settings.ts';
import { type DeploymentSettings, workflowIds } from '../contract/workflow_ids.ts';
import type { ExportLink, RunLink } from './runs/read_model.ts';

/** Each returns a URL, or null when no UI is configured. */
interface TemporalLinks {
  readonly runLink: RunLink;
  readonly exportLink: ExportLink;
  /** The list of a project's workflows. */
  readonly projectLink: (projectId: number) => string | null;
}

/**
 * Links to the Temporal UI: of a run to the workflow id of its interval, which lists all runs of that interval; of an export
 * and of a project to their workflows, by their search attributes.
 */
export function createTemporalLinks(
  settings: DeploymentSettings & Pick<Settings, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>,
): TemporalLinks {
  const { TEMPORAL_UI_URL, TEMPORAL_NAMESPACE } = settings;
  if (TEMPORAL_UI_URL === undefined)
    return { runLink: () => null, exportLink: () => null, projectLink: () => null };
  const base = `${TEMPORAL_UI_URL.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(TEMPORAL_NAMESPACE)}/workflows`;
  return {
    runLink: (run) => `${base}/${encodeURIComponent(workflowIds(settings).run(run))}`,
    exportLink: (id) => `${base}?query=${encodeURIComponent(`${searchAttributes.batchExport.name}="${id}"`)}`,
    projectLink: (id) => `${base}?query=${encodeURIComponent(`${searchAttributes.project.name}="${id}"`)}`,
  };
}
