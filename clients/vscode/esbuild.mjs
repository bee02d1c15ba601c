// Bundles the extension, its webview and, with --tests, the unit tests, into out/.
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const minify = process.argv.includes("--minify");
const shared = { bundle: true, minify, sourcemap: !minify, logLevel: "warning" };

if (process.argv.includes("--tests")) {
  await build({
    ...shared,
    entryPoints: readdirSync("test/unit")
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => `test/unit/${name}`),
    outdir: "out/test",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
  });
} else {
  await Promise.all([
    build({
      ...shared,
      entryPoints: ["src/extension.ts"],
      outfile: "out/extension.js",
      platform: "node",
      format: "cjs",
      target: "node20",
      external: ["vscode"],
    }),
    build({
      ...shared,
      entryPoints: ["src/web.ts"],
      outfile: "out/web.js",
      platform: "browser",
      format: "cjs",
      target: "es2022",
      external: ["vscode"],
    }),
    build({
      ...shared,
      entryPoints: ["webview/main.ts"],
      loader: { ".ttf": "file" },
      outdir: "out/webview",
      platform: "browser",
      format: "iife",
      target: "es2022",
    }),
  ]);
}
