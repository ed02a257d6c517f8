import type { DataFolder } from '../data_folder.ts';
import { demoFilePath, type DemoFile } from './demo_file.ts';

/** What a person can do with the demo next. */
export function demoInstructions(folder: DataFolder, demo: DemoFile): string {
  const path = `${demo.base_url}/api/environments/${String(demo.project_id)}/batch_exports/${demo.batch_export_id}`;
  return `
  HTTP interface  ${demo.base_url}
  Temporal UI     ${demo.temporal_ui ?? '(of your own Temporal)'}
  S3              ${demo.s3_endpoint}, bucket ${demo.bucket}
  Keys and ids    ${demoFilePath(folder)}
  Logs            ${folder.inside('logs')}

Try, in another terminal:

  KEY=${demo.api_key}
  EXPORT=${path}
  curl -H "Authorization: Bearer $KEY" $EXPORT/
  curl -H "Authorization: Bearer $KEY" "$EXPORT/runs/?limit=5"
  curl -H "Authorization: Bearer $KEY" $EXPORT/logs/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/pause/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/unpause/

Ctrl-C stops everything; npm start goes on where it stopped.
`;
}
