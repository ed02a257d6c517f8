import type { ReadingResponse } from '../../../http/intervals/schema.ts';
import { useResource } from '../../api/resource.ts';
import { CopyBlock } from '../../components/actions.ts';
import { Loaded, Section } from '../../components/page.ts';
import { html, type View } from '../../html.ts';
import type { PartProps } from './export_actions.ts';

/** Programs that read the files of the export, to copy. */
export function Reading({ found }: PartProps): View {
  const reading = useResource<ReadingResponse>(`batch_exports/${found.id}/reading/`);
  return html`<${Loaded} resource=${reading}>
    ${({ bucket_name, manifests, recipes }: ReadingResponse) => html`
      <p>
        Read the manifests, and then the files that they list: each has the current files of an interval, and
        a listing of the bucket has files of older generations too. They are below${' '}
        <code>s3://${bucket_name}/${manifests}</code>. With${' '} <code>since</code>, a program reads what was
        exported after a time: replace the rows of these intervals in your copy.
      </p>
      ${recipes.map(
        ({ reader, code, tested }) =>
          html`<${Section} title=${reader}>
            ${!tested && html`<p class="field-hint">The tests of exportd do not run this program.</p>`}
            <${CopyBlock} label=${`program for ${reader}`} text=${code} />
          <//>`,
      )}
    `}
  <//>`;
}
