%% A read of a registry whose library is not loaded answers what an empty registry answers: message sends, and the
%% start of a runtime, must not break over a file that is missing (docs/architecture.md, "Without the library").
-define(READ(Call, Empty),
    try
        Call
    catch
        error:{nif_not_loaded, _} -> Empty;
        error:undef -> Empty
    end
).
