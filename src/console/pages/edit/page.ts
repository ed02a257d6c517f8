import '../../components/shared.ts';
import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import { useResource } from '../../api/resource.ts';
import { Loaded, Page } from '../../components/page.ts';
import { html, type View } from '../../html.ts';
import { paths, type PageProps } from '../../router/paths.ts';
import { EditForm } from './edit_form.ts';

/** Creates an export, or changes the one of the path. */
export default function EditPage({ params }: PageProps): View {
  const id = params.id ?? null;
  const found = useResource<BatchExportResponse>(id !== null ? `batch_exports/${id}/` : null);
  const exportsPage = { title: 'Exports', path: paths.exports };
  if (id === null)
    return html`<${Page} title="New export" parents=${[exportsPage]}>
      <${EditForm} found=${null} />
    <//>`;
  const parents = [exportsPage, { title: found.data?.name ?? 'Export', path: paths.export(id) }];
  return html`<${Page} title="Edit" parents=${parents}>
    <${Loaded} resource=${found}>
      ${(batchExport: BatchExportResponse) => html`<${EditForm} found=${batchExport} />`}
    <//>
  <//>`;
}
