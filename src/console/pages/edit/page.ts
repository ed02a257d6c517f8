import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import { useResource } from '../../api/resource.ts';
import { may } from '../../api/client.ts';
import { EmptyState, Loaded, Page } from '../../components/page.ts';
import { html, type View } from '../../html.ts';
import { paths, type PageProps } from '../../router/paths.ts';
import { EditForm } from './edit_form.ts';

/** Creates an export, or changes the one of the path. */
export default function EditPage({ params }: PageProps): View {
  const id = params.id ?? null;
  const mayWrite = may('batch_export:write');
  const found = useResource<BatchExportResponse>(mayWrite && id !== null ? `batch_exports/${id}/` : null);
  const exportsPage = { title: 'Exports', path: paths.exports };
  if (!mayWrite)
    return html`<${Page} title="Edit" parents=${[exportsPage]}>
      <${EmptyState} title="This key may not change exports">
        Create one that may: npx exportd key create --scopes batch_export:read,batch_export:write
      <//>
    <//>`;
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
